#include "proxy/log_events.h"

#include "admin/log_events.h"

namespace egret::proxy {

namespace {
constexpr const base::LogEvent* kEvents[] = {&kListening,
                                             &kStopped,
                                             &kSessionOpen,
                                             &kSessionResized,
                                             &kSessionNotResized,
                                             &kSessionFellBack,
                                             &kSessionReturned,
                                             &kSessionLost,
                                             &kNoSession,
                                             &kSlotsOpen,
                                             &kSlotsClosed,
                                             &kSlotsRefused,
                                             &kNoSlots,
                                             &kFewDescriptors,
                                             &kNoDescriptors,
                                             &kEmptyShare,
                                             &kMemberJoined,
                                             &kMemberLeft,
                                             &kMemberEjected,
                                             &kMemberReturned,
                                             &kEjectionWithheld,
                                             &kFailoverBegun,
                                             &kFailoverOver,
                                             &kNoStandIn,
                                             &kPurgedForOthers,
                                             &kMemberHeldBack,
                                             &kMemberLetIn,
                                             &kMemberNotTold,
                                             &kWarmBegun,
                                             &kWarmOver,
                                             &kWarmNotTold,
                                             &kMembersUnknown,
                                             &kMembersKnown,
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
                                             &kNotListening,
                                             &kConnectionLimit,
                                             &kAuthenticationFailed};
}  // namespace

base::LogEvents log_events() {
  return base::joined({kEvents, admin::kLogEvents, base::base_log_events()});
}

}  // namespace egret::proxy
