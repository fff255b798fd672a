#include "backend/log_events.h"

#include "admin/log_events.h"

namespace egret::backend {

namespace {
constexpr const base::LogEvent* kEvents[] = {&kListening,
                                             &kMemoryReady,
                                             &kMemoryNotLocked,
                                             &kServing,
                                             &kStopped,
                                             &kWarmRestart,
                                             &kWarmRestartFailed,
                                             &kAcceptFailed,
                                             &kSessionOpen,
                                             &kSessionClosed,
                                             &kSessionRefused,
                                             &kConnectionEnded,
                                             &admin::kAdminListening,
                                             &admin::kAdminNotListening,
                                             &admin::kAdminNoDescriptors,
                                             &admin::kAdminHttp,
                                             &base::kReloaded,
                                             &base::kNeedsRestart,
                                             &base::kReloadRefused,
                                             &kNotListening,
                                             &kMemoryNotChanged,
                                             &base::kHostProblem,
                                             &base::kWithheld};
}  // namespace

std::span<const base::LogEvent* const> log_events() {
  return kEvents;
}

}  // namespace egret::backend
