// What a worker's pass costs while its sessions have nothing to do.
#pragma once

#include "bench_rpc/crowd.h"

namespace egret::bench_rpc {

struct PassCost {
  double ns = 0;               // of a pass, which touches the active sessions: none
  double touching_all_ns = 0;  // ... if it touched every session
};

// All sessions are open, and nothing is under way.
PassCost measure_passes(Crowd& crowd);

}  // namespace egret::bench_rpc
