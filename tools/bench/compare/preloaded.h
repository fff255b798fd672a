// A turn of Kind::kPreloaded: `egret-bench client --libmemcached`, in a process of its own, since what is preloaded has to be
// there when a process begins.
#pragma once

#include <atomic>

#include "base/status.h"
#include "bench/server/server.h"
#include "bench_compare/measure.h"
#include "bench_compare/rows.h"

namespace egret::bench_compare {

// Under the server's preloader, if it has one; then it is an error if no slot was used. Main thread only.
base::Expected<Figures> measure_preloaded(const bench::Server& server, const Row& row, const std::atomic<bool>& stop);

}  // namespace egret::bench_compare
