// Log events about the admin address (base/log/log_events.h); both daemons' tables include these rows.
#pragma once

#include "base/log/log_events.h"

namespace egret::admin {

inline constexpr base::LogEvent kAdminListening{
    .name = "admin_listening",
    .id = "b373034f94b84d5a986dffc0e8e41557",
    .level = base::LogLevel::kInfo,
    .meaning = "Metrics, health and the status page are served at this address."};
inline constexpr base::LogEvent kAdminNotListening{
    .name = "admin_not_listening",
    .id = "f0d7d19563a0460587cc785348774d38",
    .level = base::LogLevel::kWarning,
    .meaning = "Listening at the default admin address failed, so there are no metrics and no status page.",
    .advice = "Give each daemon of this host its own address by the option admin, or none."};
inline constexpr base::LogEvent kAdminNoDescriptors{
    .name = "admin_no_descriptors",
    .id = "e9f0b908edd649ffbf735fdd59da1e49",
    .level = base::LogLevel::kWarning,
    .meaning = "A connection at the admin address could not be accepted, because no descriptor is free.",
    .advice = "Raise LimitNOFILE (ulimit -n)."};
inline constexpr base::LogEvent kAdminHttp{
    .name = "admin_http",
    .id = "8401a745737847ddaa42873d365bf168",
    .level = base::LogLevel::kDebug,
    .meaning = "A message of the HTTP library about a client at the admin address."};

inline constexpr const base::LogEvent* kLogEvents[] = {&kAdminListening, &kAdminNotListening, &kAdminNoDescriptors,
                                                       &kAdminHttp};

}  // namespace egret::admin
