// Tells the supervisor of this process its state, by sd_notify's protocol: one datagram of NAME=VALUE lines to the
// socket that NOTIFY_SOCKET names. systemd (Type=notify) and egret-memcached listen there. Without that variable
// nothing is sent.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace egret::base {

// Lines that are sent. Those that begin with X_EGRET are for egret-memcached.
inline constexpr std::string_view kNotifyReady = "READY=1";
inline constexpr std::string_view kNotifyReloading = "RELOADING=1";  // with a MONOTONIC_USEC; until READY
inline constexpr std::string_view kNotifyStatus = "STATUS=";
inline constexpr std::string_view kNotifyListening =
    "X_EGRET_LISTENING=";  // as bound, many: tcp:127.0.0.1:1, tcp6:[::1]:1, unix:/x
inline constexpr std::string_view kNotifyCannotListen = "X_EGRET_NO_LISTEN=1";  // with a STATUS

// Best effort; waits at most a second for a supervisor that does not read. Any thread. Up to 253 descriptors travel
// with the message: with FDSTORE=1 systemd keeps them for the next process (inherited.h).
// False: there is a supervisor, and sending failed.
bool notify_supervisor(const std::string& lines, std::span<const int> descriptors = {});
// The same, and never waits: what a supervisor that does not read has no room for is not said.
bool notify_supervisor_at_once(const std::string& lines);

// Waits until the supervisor has processed all earlier messages, as sd_notify_barrier(3). False: it did not within some
// seconds, or sending failed.
bool notify_barrier();

}  // namespace egret::base
