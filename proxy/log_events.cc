#include "proxy/log_events.h"

#include "admin/log_events.h"

namespace egret::proxy {

namespace {
constexpr const base::LogEvent* kEvents[] = {&kListening,
                                             &kStopped,
                                             &kSessionOpen,
                                             &kSessionLost,
                                             &kNoSession,
                                             &kFewDescriptors,
                                             &kNoDescriptors,
                                             &kEmptyShare,
                                             &kAuthFileRead,
                                             &kAuthFileRefused,
                                             &kCertificatesRead,
                                             &kCertificatesDoubtful,
                                             &kCertificatesRefused,
                                             &kTlsHandshakeFailed,
                                             &kTlsConnectionFailed,
                                             &kClientsHandedOver,
                                             &kClientsTakenOver,
                                             &kHandoverFailed,
                                             &admin::kAdminListening,
                                             &admin::kAdminNotListening,
                                             &admin::kAdminNoDescriptors,
                                             &admin::kAdminHttp,
                                             &base::kReloaded,
                                             &base::kNeedsRestart,
                                             &base::kReloadRefused,
                                             &kNotListening,
                                             &base::kHostProblem,
                                             &base::kWithheld};
}  // namespace

std::span<const base::LogEvent* const> log_events() {
  return kEvents;
}

}  // namespace egret::proxy
