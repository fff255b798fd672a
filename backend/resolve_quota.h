// How many sessions a backend may have, and how much memory for their slots: what this host and the options leave.
#pragma once

#include "backend/config.h"
#include "base/options/options.h"

namespace egret::backend {

// Fills in `room`, `needs` and `quota`. Everything else of the configuration that bears on them is resolved: addresses,
// memory, partitions and the sizes of sessions.
void resolve_quota(const base::Options& options, Config& config);

}  // namespace egret::backend
