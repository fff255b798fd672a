// The tables of `egret-bench placement`.
#pragma once

#include <vector>

#include "bench_placement/measure.h"
#include "bench_store/table.h"

namespace egret::bench_placement {

std::vector<bench_store::Table> tables_of(const MeasureOptions& options, const Outcome& outcome);

}  // namespace egret::bench_placement
