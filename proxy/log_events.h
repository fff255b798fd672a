// The log events of egret-proxy, one row each (base/log/log_events.h).
#pragma once

#include "base/log/log_events.h"

namespace egret::proxy {

inline constexpr base::LogEvent kListening{.name = "listening",
                                           .id = "86542d61f16c494fa37fdbe98da85ec0",
                                           .level = base::LogLevel::kInfo,
                                           .meaning = "Clients are accepted at this address from now on."};
inline constexpr base::LogEvent kStopped{
    .name = "stopped",
    .id = "cc8e93fbbd15454bbb81c72289765c8c",
    .level = base::LogLevel::kInfo,
    .meaning = "The process has ended after a requested stop; requests in flight were answered."};
inline constexpr base::LogEvent kSessionOpen{
    .name = "session_open",
    .id = "403e3ae3ea6c473c9bea27af4c7dbfae",
    .level = base::LogLevel::kInfo,
    .meaning = "A worker has opened its session with a backend. The line has the slots and the device."};
inline constexpr base::LogEvent kSessionResized{
    .name = "session_resized",
    .id = "b0c4f5d2a1e94b7f8a63d1f27c5e90ab",
    .level = base::LogLevel::kInfo,
    .meaning =
        "A session over a network goes on with more slots, since its ops waited for them, or with fewer, after "
        "give_back_after with little to do. No request notices."};
inline constexpr base::LogEvent kSessionNotResized{
    .name = "session_not_resized",
    .id = "5de2c1b79f0a4d3c9b8e6a4712f3c5d8",
    .level = base::LogLevel::kInfo,
    .meaning =
        "A session should have had more slots, or fewer, and keeps what it has. It is tried again, later each "
        "time.",
    .advice =
        "If the line names a limit of the backend, such as max_sessions, sessions_per_peer or session_memory, "
        "raise it there: for a moment a session that grows counts twice."};
inline constexpr base::LogEvent kSessionFellBack{
    .name = "session_fell_back",
    .id = "151fbccac0604639bea0242e6ceeb83f",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A session with an rdma+tcp: backend goes over TCP, since RDMA cannot be had just now. Nothing fails, it is "
        "slower. RDMA is tried again and again, and the session returns to it by itself.",
    .advice =
        "The line says why. Nothing, if this host or the backend's has no RDMA device; else examine devices and the "
        "fabric: egret-proxy --doctor tries both ways at once."};
inline constexpr base::LogEvent kSessionReturned{
    .name = "session_returned",
    .id = "f07e596705644f81a997bfe3d1bee29f",
    .level = base::LogLevel::kInfo,
    .meaning = "A session that went over TCP goes over RDMA again. No request notices."};
inline constexpr base::LogEvent kSessionLost{
    .name = "session_lost",
    .id = "9e6c2fb29b9146e99292b540ab867a99",
    .level = base::LogLevel::kWarning,
    .meaning =
        "An open session has ended. Requests in flight were answered with an error, and the worker reconnects by "
        "itself.",
    .advice =
        "If the backend was not restarted on purpose, look at its log and at the network. If every worker logs it at "
        "once, the backend or its host is gone."};
inline constexpr base::LogEvent kNoSession{.name = "no_session",
                                           .id = "5252429c62804a7aae643f3ca989e292",
                                           .level = base::LogLevel::kWarning,
                                           .meaning =
                                               "A worker cannot open a session with a backend and keeps trying. The "
                                               "backend's keys get SERVER_ERROR backend unavailable.",
                                           .advice =
                                               "Start the backend, or correct the address, the secret or the limit "
                                               "that the line names; egret-proxy --doctor tries it at once."};
inline constexpr base::LogEvent kSlotsOpen{
    .name = "slots_open",
    .id = "5a0d7a3f6c1e4b0a9c52f1d87e3b6a41",
    .level = base::LogLevel::kInfo,
    .meaning = "A client of this host has a session by shared memory, through which it reaches the backend."};
inline constexpr base::LogEvent kSlotsClosed{.name = "slots_closed",
                                             .id = "c4b7e0912d5f4e3c8a6b1f0d93e7a258",
                                             .level = base::LogLevel::kInfo,
                                             .meaning = "Such a session has ended; the line says why."};
inline constexpr base::LogEvent kSlotsRefused{
    .name = "slots_refused",
    .id = "1f6e2c9ab8d34c57b0e4a7d35c81f962",
    .level = base::LogLevel::kWarning,
    .meaning = "A client of this host was refused slots. It uses its socket instead, if it can.",
    .advice =
        "The line names the limit, or the user who may not: slots_uids, slots_gids, slots_memory, uids in the "
        "users_file."};
inline constexpr base::LogEvent kNoSlots{
    .name = "no_slots",
    .id = "8d3b5e7f20a94d6e9f1c6b8a4e07d53c",
    .level = base::LogLevel::kWarning,
    .meaning = "The proxy cannot listen for slot clients beside one of its addresses. Clients by sockets are served.",
    .advice = "If another process has the name, find it with ss -xlp; a path's folder must be writable for the proxy."};
inline constexpr base::LogEvent kFewDescriptors{
    .name = "few_descriptors",
    .id = "7a19290b59e640a7b2ca8bbe853dd25d",
    .level = base::LogLevel::kWarning,
    .meaning = "max_connections was lowered, because the limit of open files does not allow more.",
    .advice = "Raise LimitNOFILE (ulimit -n), or lower max_connections."};
inline constexpr base::LogEvent kNoDescriptors{.name = "no_descriptors",
                                               .id = "15f621fe59814faab80bea2b6491c3bd",
                                               .level = base::LogLevel::kWarning,
                                               .meaning =
                                                   "A client could not be accepted, because no descriptor is free. "
                                                   "Waiting clients are accepted when there are descriptors again.",
                                               .advice = "Raise LimitNOFILE (ulimit -n)."};
inline constexpr base::LogEvent kConnectionLimit{
    .name = "connection_limit",
    .id = "182c645c6c87497cb74e9b11f85ef197",
    .level = base::LogLevel::kWarning,
    .meaning =
        "max_connections are open. Further clients are refused or, with maxconns_fast off, wait until one leaves. "
        "Logged at most once a minute.",
    .advice =
        "Raise max_connections (and LimitNOFILE), or find the clients that do not close connections; idle_timeout "
        "helps."};
inline constexpr base::LogEvent kEmptyShare{
    .name = "empty_share",
    .id = "60b45e5db81c4f34a7548351d5c5c8c9",
    .level = base::LogLevel::kWarning,
    .meaning = "A backend gets no keys, because its weight is too small compared with the others.",
    .advice = "Nothing, if you are draining it; else raise its weight."};
inline constexpr base::LogEvent kMemberJoined{
    .name = "member_joined",
    .id = "a57d20af0b004fcfbc4b7183a2d263fe",
    .level = base::LogLevel::kInfo,
    .meaning = "The pool has another backend: its share of the keys is asked there from now on."};
inline constexpr base::LogEvent kMemberLeft{
    .name = "member_left",
    .id = "dda12207a6524a97b3108ca959e5adfa",
    .level = base::LogLevel::kInfo,
    .meaning =
        "The pool has a backend less: what is under way with it is finished, and its keys belong to the others."};
inline constexpr base::LogEvent kMemberEjected{
    .name = "member_ejected",
    .id = "093f78f8cfad4487b8f3e481e6133f73",
    .level = base::LogLevel::kWarning,
    .meaning = "A backend is out of use: requests for its keys fail at once, and it is probed until it answers.",
    .advice = "Examine the backend and the way to it; egret-proxy --doctor tries it at once."};
inline constexpr base::LogEvent kMemberReturned{
    .name = "member_returned",
    .id = "43f04185fc544f42afa5d9b053e63a16",
    .level = base::LogLevel::kInfo,
    .meaning = "An ejected backend has answered a probe, and is in use again."};
inline constexpr base::LogEvent kEjectionWithheld{
    .name = "ejection_withheld",
    .id = "3bbb8c686f6f4186ba08e59ac1f7a5b2",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A backend does not answer, but as many as eject_share allows are ejected already, or fewer may be since the "
        "pool or eject_share has become smaller: it is tried on, and requests for its keys may wait for op_timeout.",
    .advice = "Examine the network of this host first: so many backends seldom fail at once."};
inline constexpr base::LogEvent kFailoverBegun{
    .name = "failover_begun",
    .id = "7c1e2f0d3b894be5a9d4c6e8f7a05b12",
    .level = base::LogLevel::kWarning,
    .meaning = "A backend is ejected, and the backends of the gutter take requests for its keys.",
    .advice = "Examine the backend. What it held is missing until it returns; the gutter begins empty."};
inline constexpr base::LogEvent kFailoverOver{
    .name = "failover_over",
    .id = "f25a9c3e6d1740c8b0e7a4d98c3b61f4",
    .level = base::LogLevel::kInfo,
    .meaning =
        "An ejected backend is in use again. What was changed in the gutter meanwhile has been removed from it; "
        "everything, if not all of that was known."};
inline constexpr base::LogEvent kPurgedForOthers{
    .name = "purged_for_others",
    .id = "b0dd12414d8ee9f1489787e3a66e4b67",
    .level = base::LogLevel::kInfo,
    .meaning =
        "This proxy has flushed a backend, since other proxies that could not reach it have changed keys of it in the "
        "gutter, and not all of them are known."};
inline constexpr base::LogEvent kNoStandIn{
    .name = "no_stand_in",
    .id = "3a8d5e71c2f64b09957b1ce04fd2a386",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A backend of the gutter cannot be used in the place of an ejected one: its share of that one's keys fails. "
        "It is tried again.",
    .advice =
        "The line says why. A backend of the gutter must be reachable, of this version, and give this proxy the right "
        "to flush; egret-proxy --doctor tries it at once."};
inline constexpr base::LogEvent kMemberHeldBack{
    .name = "member_held_back",
    .id = "21304fdae7864f92ae33d7ec2312a4dc",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A backend could not be told that the members of the pool have changed. It may still hold old values of keys "
        "that came back to it, so requests for its keys fail until it has been told.",
    .advice = "Examine the backend and the way to it; egret-proxy --doctor tries it at once."};
inline constexpr base::LogEvent kMemberLetIn{
    .name = "member_let_in",
    .id = "a3d00d4881fa483187bdcfd7d6d55e43",
    .level = base::LogLevel::kInfo,
    .meaning = "A backend that was held back has been told of the change of members, and is in use."};
inline constexpr base::LogEvent kMemberNotTold{
    .name = "member_not_told",
    .id = "6cb9e2e92c854435ac3da96924b9020e",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A backend was not told that the members of the pool have changed, and is in use all the same: if keys come "
        "back to it later, it may serve old values of them.",
    .advice =
        "The line says why. If two pools share the backend, set purge_moved: false; if it is of an older version, "
        "replace it."};
inline constexpr base::LogEvent kWarmBegun{
    .name = "warm_begun",
    .id = "c1f7b9c36f6a4d1c9f0b0e6b7a2d53e4",
    .level = base::LogLevel::kInfo,
    .meaning =
        "The members of the pool have changed; the values of keys that moved are brought to their backends when "
        "they are asked for (warm_for)."};
inline constexpr base::LogEvent kWarmOver{
    .name = "warm_over",
    .id = "5d0a6b1e2c1f4a0c8d7e9b3f4c6a7182",
    .level = base::LogLevel::kInfo,
    .meaning = "The time of warm_for is over: what was not asked for meanwhile is missed from now on."};
inline constexpr base::LogEvent kWarmNotTold{
    .name = "warm_not_told",
    .id = "8e2b4f5a9d1c4b7e8f6a0c3d5e7b9a14",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A backend could not be told that the members change, so it takes no values of keys that moved to it: they "
        "are missed.",
    .advice = "If it is up: it is of an earlier version, or does not grant this proxy the right to flush."};
inline constexpr base::LogEvent kMembersUnknown{
    .name = "members_unknown",
    .id = "5a2f6d0c1b4e4c0fb6d7a0f0c3c9e771",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A name of backends cannot be resolved, or the file of backends cannot be used. The pool keeps the members "
        "that "
        "it has.",
    .advice = "The line says why. egret-proxy --doctor resolves the names and reads the file at once."};
inline constexpr base::LogEvent kMembersKnown{
    .name = "members_known",
    .id = "0d1c7f9b7a5d47a3a3b1f5c25be0a6d2",
    .level = base::LogLevel::kInfo,
    .meaning = "All names of backends resolve again, and the file of backends is in order."};
inline constexpr base::LogEvent kAuthFileRead{
    .name = "auth_file_read",
    .id = "6b57ef65adc34cb4a6bbf85a3c1195a0",
    .level = base::LogLevel::kInfo,
    .meaning = "The file of users was read again; from now on clients are checked against it."};
inline constexpr base::LogEvent kAuthFileRefused{
    .name = "auth_file_refused",
    .id = "90e01335115146619445b09e79263c5e",
    .level = base::LogLevel::kError,
    .meaning = "The file of users could not be read again. Those from before stay.",
    .advice = "Correct what the line names, and reload."};
inline constexpr base::LogEvent kAuthenticationFailed{
    .name = "authentication_failed",
    .id = "30d287ac90deebf1f034b1c5945b5c49",
    .level = base::LogLevel::kWarning,
    .meaning =
        "A client gave a wrong password, or the name of a user that there is not. Guesses of one connection, and for "
        "one user from one address, are slowed (auth_guesses).",
    .advice =
        "If the client is yours, give it the password of the file. If not, somebody guesses: keep that address from "
        "the port."};
inline constexpr base::LogEvent kCertificatesRead{
    .name = "certificates_read",
    .id = "f57031bc4229414b8caab74b73cedd9f",
    .level = base::LogLevel::kInfo,
    .meaning = "The TLS files were read again; new connections use them."};
inline constexpr base::LogEvent kCertificatesDoubtful{
    .name = "certificates_doubtful",
    .id = "8811a0eddd4f499eb952c1fd8190399b",
    .level = base::LogLevel::kWarning,
    .meaning = "The TLS files were read again and are in use, but clients may refuse them.",
    .advice = "Correct the problem that the line names (for example an expired certificate), and reload."};
inline constexpr base::LogEvent kCertificatesRefused{
    .name = "certificates_refused",
    .id = "fa3f8cca6f5b401f8bf5da8c798902c6",
    .level = base::LogLevel::kError,
    .meaning = "The TLS files could not be read again. The files read before stay in use.",
    .advice = "Correct the problem that the line names, and reload."};
inline constexpr base::LogEvent kTlsHandshakeFailed{
    .name = "tls_handshake_failed",
    .id = "e2c5e9bf0b9b4d43a4ab932145a5e0dd",
    .level = base::LogLevel::kWarning,
    .meaning = "The TLS handshake with a client failed, or the client does not use TLS.",
    .advice =
        "Nothing, if strangers can reach the address. If the client is yours: compare certificates, TLS versions and "
        "ciphers, or point it at a tcp: address."};
inline constexpr base::LogEvent kTlsConnectionFailed{
    .name = "tls_connection_failed",
    .id = "1b33fc452abe4ab287edfe8867f58412",
    .level = base::LogLevel::kWarning,
    .meaning = "A client violated the TLS protocol after its handshake, and was disconnected.",
    .advice = "Examine the client."};
inline constexpr base::LogEvent kNotListening{.name = "not_listening",
                                              .id = "b34ccfa8b7cb462f913b40172dd07530",
                                              .level = base::LogLevel::kInfo,
                                              .meaning = "A reload has closed this address; connected clients stay."};
inline constexpr base::LogEvent kClientsHandedOver{
    .name = "clients_handed_over",
    .id = "fa1f13b4abe44d9e8fc006051772bd48",
    .level = base::LogLevel::kInfo,
    .meaning =
        "The process ends, and hands the connections of so many clients to the service manager, for the next process "
        "(a "
        "restart). If no process takes them over, the service manager closes them."};
inline constexpr base::LogEvent kClientsTakenOver{
    .name = "clients_taken_over",
    .id = "f9f3398368024785ae1a4214994fa2ab",
    .level = base::LogLevel::kInfo,
    .meaning = "This process serves so many clients of the process before; their connections stayed open."};
inline constexpr base::LogEvent kHandoverFailed{
    .name = "handover_failed",
    .id = "bd001cbfe7a540d886a80732e2b80627",
    .level = base::LogLevel::kWarning,
    .meaning = "The service manager does not answer, so clients of the process before are disconnected.",
    .advice = "Nothing; if it happens again, examine systemd."};

// All of them, with those of the layers below.
base::LogEvents log_events();

}  // namespace egret::proxy
