// The command line of `egret-bench placement`.
#pragma once

#include <atomic>

namespace egret::bench_placement {

// argv[0] is "placement". Returns the exit status.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_placement
