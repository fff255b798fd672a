// The log events of egret-backend, one row each (base/log/log_events.h).
#pragma once

#include "base/log/log_events.h"

namespace egret::backend {

inline constexpr base::LogEvent kListening{.name = "listening",
                                           .id = "ccb7c805209c41a7b20177e9c94a8b5e",
                                           .level = base::LogLevel::kInfo,
                                           .meaning = "Proxies are accepted at this address from now on."};
inline constexpr base::LogEvent kMemoryReady{
    .name = "memory_ready",
    .id = "eceb8cc56f3f46e98df342d3ce6d3a55",
    .level = base::LogLevel::kInfo,
    .meaning = "The memory for items is ready. The line has its size and its kind of pages.",
    .advice =
        "With transparent huge pages well below 100 %, or 4 KiB pages, gets are slower than necessary; see --doctor."};
inline constexpr base::LogEvent kMemoryNotLocked{
    .name = "memory_not_locked",
    .id = "a7ccb559cc47411f90013c31323401e4",
    .level = base::LogLevel::kWarning,
    .meaning = "The memory could not be locked (lock_memory): items may be swapped out.",
    .advice = "Raise LimitMEMLOCK, or turn lock_memory off."};
inline constexpr base::LogEvent kServing{.name = "serving",
                                         .id = "19876c524dd849fa8d874a5fceaddf80",
                                         .level = base::LogLevel::kInfo,
                                         .meaning = "Everything is ready; ops are executed from now on."};
inline constexpr base::LogEvent kStopped{.name = "stopped",
                                         .id = "4296a4fbbdd84af59ed592722291ea00",
                                         .level = base::LogLevel::kInfo,
                                         .meaning = "The process has ended after a requested stop."};
inline constexpr base::LogEvent kWarmRestart{
    .name = "warm_restart",
    .id = "18a97783cfe449599ff77e70da1d3c0f",
    .level = base::LogLevel::kInfo,
    .meaning = "With warm_restart: how many items of the last run were kept, or that it is the first run."};
inline constexpr base::LogEvent kWarmRestartFailed{
    .name = "warm_restart_failed",
    .id = "f85fddeba4c54b0291b935bac919e46f",
    .level = base::LogLevel::kWarning,
    .meaning = "With warm_restart: the items of the last run could not be kept, or not all of them.",
    .advice =
        "Nothing; the line says why. If the process was not killed and no option was changed, examine the file system "
        "of warm_restart."};
inline constexpr base::LogEvent kAcceptFailed{
    .name = "accept_failed",
    .id = "1facc6b942ef49f78bf4364530dc1ddc",
    .level = base::LogLevel::kWarning,
    .meaning = "A connection of a proxy could not be accepted.",
    .advice =
        "Correct the problem that the line names: descriptors (LimitNOFILE), pinned memory (LimitMEMLOCK), or the "
        "device."};
inline constexpr base::LogEvent kSessionOpen{
    .name = "session_open",
    .id = "21f24de64c0846ed827065e200b8f7d1",
    .level = base::LogLevel::kInfo,
    .meaning = "A worker of a proxy has opened its session. The line has the slots and the device."};
inline constexpr base::LogEvent kSessionClosed{
    .name = "session_closed",
    .id = "b73d568c8f8f4d3bb160a4b4dae7e7e0",
    .level = base::LogLevel::kInfo,
    .meaning =
        "A session has ended, because its proxy ended, was restarted, or violated the protocol: the line says which.",
    .advice =
        "Nothing if proxies are stopped or restarted. If a proxy of yours violated the protocol, compare versions."};
inline constexpr base::LogEvent kSessionRefused{
    .name = "session_refused",
    .id = "1553514a8fd0453d94e512c044208a06",
    .level = base::LogLevel::kWarning,
    .meaning = "A proxy was refused because of the secret or a limit; the proxy logs the reason, too.",
    .advice = "Correct the problem on the side that the line names."};
inline constexpr base::LogEvent kConnectionEnded{
    .name = "connection_ended",
    .id = "67a7a4e765ae4e5ea8c72fbd5fc903db",
    .level = base::LogLevel::kWarning,
    .meaning = "A connection ended before it became a session.",
    .advice = "Nothing, if strangers can reach the address: then set secret_file, or close the port to them."};
inline constexpr base::LogEvent kNotListening{.name = "not_listening",
                                              .id = "0bb8565849a24e2ab11baad9e9b72f6d",
                                              .level = base::LogLevel::kInfo,
                                              .meaning = "A reload has closed this address; open sessions stay."};
inline constexpr base::LogEvent kMemoryNotChanged{
    .name = "memory_not_changed",
    .id = "7c6455fe8f83461a9ffafbddb00670ed",
    .level = base::LogLevel::kWarning,
    .meaning = "A reload has changed `memory` to a value that a partition cannot apply while it serves.",
    .advice = "Restart the backend (with warm_restart it starts empty, since memory has changed)."};

inline constexpr base::LogEvent kMemoryLimitSet{
    .name = "memory_limit_set",
    .id = "2cb92f594ed94f31bfc666f2d823e345",
    .level = base::LogLevel::kInfo,
    .meaning = "A client has set the memory limit by cache_memlimit. It lasts until a restart.",
    .advice = "To keep it, set memory in the file, too."};
inline constexpr base::LogEvent kMemoryLimitDiffers{
    .name = "memory_limit_differs",
    .id = "b8897142764f43a28e4de9bdf93ee7ad",
    .level = base::LogLevel::kWarning,
    .meaning = "After a reload: the limit in force was set by a client (cache_memlimit), and is not the option memory.",
    .advice = "Set memory in the file to the value that you want. The next reload applies a changed value."};

// All of them, with those of the layers below.
base::LogEvents log_events();

}  // namespace egret::backend
