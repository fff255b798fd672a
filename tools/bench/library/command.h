// The command line of `egret-bench client`.
#pragma once

#include <atomic>

namespace egret::bench_library {

// argv[0] is "client". Returns the exit status.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_library
