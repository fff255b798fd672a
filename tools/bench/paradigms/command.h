// `egret-bench paradigms`: every system of the papers on one workload, over the same verbs.
#pragma once

#include <atomic>

namespace egret::bench_paradigms {

// argv[0] is "paradigms". Exit status 1 after any error, and on wrong answers of what promises none.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_paradigms
