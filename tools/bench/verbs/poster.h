// The posting side of one point: threads that keep their queue pairs busy, and the reckoning.
//
//   pipelined     each queue pair has `depth` verbs under way, in groups of a quarter: a group is one doorbell, its
//                 last verb alone is signalled, and it is posted anew when that completes
//   unpipelined   each thread has one under way, on its queue pairs in turn, and every one is timed
//
// WRITEs and SENDs go inline when they fit. Bytes are made before and compared after, so neither is in the figures; what
// an atomic has answered is compared when its group completes.
#pragma once

#include <atomic>
#include <vector>

#include "base/status.h"
#include "bench_verbs/pairs/pair_set.h"

namespace egret::bench_verbs {

// Posts on the queue pairs of all sets (one for each host on the other side). The other sides have prepared. Blocks until everything has
// completed. An error is trouble with the queue pairs, which are of no further use then.
base::Expected<Figures> run_point(const Point& point, const std::vector<PairSet*>& sets, const std::atomic<bool>& stop);

}  // namespace egret::bench_verbs
