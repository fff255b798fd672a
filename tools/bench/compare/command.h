// The command line of `egret-bench compare`.
#pragma once

#include <atomic>

namespace egret::bench_compare {

// argv[0] is "compare". Returns the exit status. `stop`, set by a signal, ends it early.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_compare
