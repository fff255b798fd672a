// So many processes at once, each with connections of its own and one get at a time: what PHP's workers are.
#pragma once

#include "base/status.h"
#include "bench_library/measure.h"

namespace egret::bench_library {

inline constexpr size_t kProcesses = 50;

// A turn of Kind::kProcesses; adds to the row, but no durations of calls. An error: one of them has got a wrong answer, or
// none. Threads: the process must have one alone, since it forks.
base::Status run_processes(const Side& side, const MeasureOptions& options, Row& row);

}  // namespace egret::bench_library
