#include "backend/log_events.h"

#include "admin/log_events.h"

namespace egret::backend {

namespace {
constexpr const base::LogEvent* kEvents[] = {
    &kListening,    &kMemoryReady,      &kMemoryNotLocked,   &kServing,
    &kStopped,      &kWarmRestart,      &kWarmRestartFailed, &kAcceptFailed,
    &kSessionOpen,  &kSessionClosed,    &kSessionRefused,    &kConnectionEnded,
    &kNotListening, &kMemoryNotChanged, &kMemoryLimitSet,    &kMemoryLimitDiffers};
}  // namespace

base::LogEvents log_events() {
  return base::joined({kEvents, admin::kLogEvents, base::base_log_events()});
}

}  // namespace egret::backend
