// The tables of what was measured, with the goals beside what was found.
#pragma once

#include <vector>

#include "bench_rpc/measure.h"
#include "bench_store/table.h"

namespace egret::bench_rpc {

// "rates": one session, and the store in this process. "sessions": how it falls with their number.
std::vector<bench_store::Table> tables_of(const MeasureOptions& options, const Outcome& outcome);

}  // namespace egret::bench_rpc
