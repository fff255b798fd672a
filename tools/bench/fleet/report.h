// The tables of what was counted and measured, the model's counts beside them.
#pragma once

#include <vector>

#include "bench_fleet/fleet.h"
#include "bench_store/table.h"

namespace egret::bench_fleet {

std::vector<bench_store::Table> tables_of(const FleetOptions& options, const Outcome& outcome);

}  // namespace egret::bench_fleet
