// Tells whoever started this process how it is, by sd_notify's protocol: one datagram of NAME=VALUE lines to the socket
// that NOTIFY_SOCKET names. systemd listens there (Type=notify), and so does egret-memcached. Without it: nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace egret::base {

// Of the lines that egret-memcached reads and systemd does not know.
inline constexpr std::string_view kNotifyReady = "READY=1";
inline constexpr std::string_view kNotifyReloading = "RELOADING=1";  // with a MONOTONIC_USEC; until READY
inline constexpr std::string_view kNotifyStatus = "STATUS=";
inline constexpr std::string_view kNotifyListening =
    "X_EGRET_LISTENING=";  // as bound, many: tcp:127.0.0.1:1, tcp6:[::1]:1, unix:/x
inline constexpr std::string_view kNotifyCannotListen = "X_EGRET_NO_LISTEN=1";  // with a STATUS

// Best effort; waits for a supervisor that does not read, but for a second at most. Any thread. Descriptors, at most
// 253, travel with the message: FDSTORE=1 has systemd keep them for the next process (inherited.h).
// False: there is a supervisor, and it has not been told.
bool notify_supervisor(const std::string& lines, std::span<const int> descriptors = {});

// Waits until the supervisor has acted on all that was sent before, as sd_notify_barrier(3); false: it did not within
// some seconds, or could not be asked.
bool notify_barrier();

}  // namespace egret::base
