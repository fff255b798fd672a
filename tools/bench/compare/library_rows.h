// Measures rows of client libraries: the same gets to Egret and to the others, in turn. Of Kind::kLibrary by libegret and by a
// socket, of Kind::kPreloaded by libmemcached, to Egret preloaded.
#pragma once

#include <atomic>
#include <vector>

#include "base/status.h"
#include "bench/rounds.h"
#include "bench/server/server.h"
#include "bench_compare/measure.h"

namespace egret::bench_compare {

// `servers`: Egret's, and others; result.series has one for each, in this order.
base::Status measure_library(const std::vector<bench::Server>& servers, const bench::RoundsSpec& rounds,
                             const std::atomic<bool>& stop, RowResult& result);

}  // namespace egret::bench_compare
