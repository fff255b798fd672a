// The log events of egret-backend, one row each (base/log_events.h).
#pragma once

#include "base/log_events.h"

namespace egret::backend {

inline constexpr base::LogEvent kListening{.name = "listening",
                                           .id = "ccb7c805209c41a7b20177e9c94a8b5e",
                                           .level = base::LogLevel::kInfo,
                                           .meaning = "Proxies are accepted at this address from now on."};
inline constexpr base::LogEvent kMemoryReady{
    .name = "memory_ready",
    .id = "eceb8cc56f3f46e98df342d3ce6d3a55",
    .level = base::LogLevel::kInfo,
    .meaning = "How much memory the items have, and in what pages.",
    .advice =
        "Transparent huge pages well below 100 %, or 4 KiB pages: gets are slower than they need be; see --doctor."};
inline constexpr base::LogEvent kMemoryNotLocked{
    .name = "memory_not_locked",
    .id = "a7ccb559cc47411f90013c31323401e4",
    .level = base::LogLevel::kWarning,
    .meaning = "lock_memory could not be done: the items may be swapped out.",
    .advice = "Raise LimitMEMLOCK, or turn lock_memory off."};
inline constexpr base::LogEvent kServing{.name = "serving",
                                         .id = "19876c524dd849fa8d874a5fceaddf80",
                                         .level = base::LogLevel::kInfo,
                                         .meaning = "Everything is ready; ops are executed from now on."};
inline constexpr base::LogEvent kStopped{.name = "stopped",
                                         .id = "4296a4fbbdd84af59ed592722291ea00",
                                         .level = base::LogLevel::kInfo,
                                         .meaning = "The process has ended as it was told to."};
inline constexpr base::LogEvent kWarmRestart{
    .name = "warm_restart",
    .id = "18a97783cfe449599ff77e70da1d3c0f",
    .level = base::LogLevel::kInfo,
    .meaning = "With warm_restart: how many items of the last run were kept, or that it is the first run."};
inline constexpr base::LogEvent kWarmRestartFailed{
    .name = "warm_restart_failed",
    .id = "f85fddeba4c54b0291b935bac919e46f",
    .level = base::LogLevel::kWarning,
    .meaning = "With warm_restart: nothing, or not everything, could be kept of the last run.",
    .advice =
        "Nothing; the line says why. If it was not killed and nothing was changed, look at the file system of "
        "warm_restart."};
inline constexpr base::LogEvent kAcceptFailed{
    .name = "accept_failed",
    .id = "1facc6b942ef49f78bf4364530dc1ddc",
    .level = base::LogLevel::kWarning,
    .meaning = "A connection of a proxy could not be accepted.",
    .advice =
        "Mend what the line says: descriptors (LimitNOFILE), memory that may be pinned (LimitMEMLOCK), or the device."};
inline constexpr base::LogEvent kSessionOpen{
    .name = "session_open",
    .id = "21f24de64c0846ed827065e200b8f7d1",
    .level = base::LogLevel::kInfo,
    .meaning = "A worker of a proxy has its session, with these slots, over this device."};
inline constexpr base::LogEvent kSessionClosed{
    .name = "session_closed",
    .id = "b73d568c8f8f4d3bb160a4b4dae7e7e0",
    .level = base::LogLevel::kInfo,
    .meaning =
        "A session has ended, because its proxy left, was restarted, or broke the protocol: the line says which.",
    .advice = "Nothing when proxies come and go. If a proxy that is yours broke the protocol: compare versions."};
inline constexpr base::LogEvent kSessionRefused{
    .name = "session_refused",
    .id = "1553514a8fd0453d94e512c044208a06",
    .level = base::LogLevel::kWarning,
    .meaning = "A proxy was refused, and was told why: the secret, or a limit.",
    .advice = "Mend what the line says on the side that it names."};
inline constexpr base::LogEvent kConnectionEnded{
    .name = "connection_ended",
    .id = "67a7a4e765ae4e5ea8c72fbd5fc903db",
    .level = base::LogLevel::kWarning,
    .meaning = "A connection ended before it became a session.",
    .advice = "Nothing, if strangers can reach the address: then set secret_file, or close the port to them."};
inline constexpr base::LogEvent kNotListening{
    .name = "not_listening",
    .id = "0bb8565849a24e2ab11baad9e9b72f6d",
    .level = base::LogLevel::kInfo,
    .meaning = "By a reload this address is given up; sessions that are open stay."};
inline constexpr base::LogEvent kMemoryNotChanged{
    .name = "memory_not_changed",
    .id = "7c6455fe8f83461a9ffafbddb00670ed",
    .level = base::LogLevel::kWarning,
    .meaning = "A reload asked for an amount of memory that a partition cannot have while it serves.",
    .advice = "Restart the backend (with warm_restart it starts empty, since memory has changed)."};

inline constexpr base::LogEvent kMemoryLimitSet{
    .name = "memory_limit_set",
    .id = "2cb92f594ed94f31bfc666f2d823e345",
    .level = base::LogLevel::kInfo,
    .meaning = "A client has set the limit of memory by cache_memlimit. It holds until a restart.",
    .advice = "If it is to last, set memory in the file as well."};
inline constexpr base::LogEvent kMemoryLimitDiffers{
    .name = "memory_limit_differs",
    .id = "b8897142764f43a28e4de9bdf93ee7ad",
    .level = base::LogLevel::kWarning,
    .meaning =
        "After a reload: the limit in force is one that a client has set by cache_memlimit, not the option memory.",
    .advice = "Set memory in the file to what is meant. A changed value is applied by the next reload."};

// All of them, with those of the layers below.
base::LogEvents log_events();

}  // namespace egret::backend
