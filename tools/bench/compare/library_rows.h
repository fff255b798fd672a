// Measures rows of Kind::kLibrary: the same gets by libegret to Egret and by a socket to the others, in turn.
#pragma once

#include <atomic>
#include <vector>

#include "base/status.h"
#include "bench/rounds.h"
#include "bench/server/server.h"
#include "bench_compare/measure.h"

namespace egret::bench_compare {

// `servers`: Egret's, which is reached by libegret, and others, by a socket; result.series has one for each, in this order.
base::Status measure_library(const std::vector<bench::Server>& servers, const bench::RoundsSpec& rounds,
                             const std::atomic<bool>& stop, RowResult& result);

}  // namespace egret::bench_compare
