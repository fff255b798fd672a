// `egret-bench verbs`: raw verbs between two hosts (or one and several), without Egret. The listening side decides what
// is measured; both sides print the results.
#pragma once

#include <atomic>

namespace egret::bench_verbs {

// argv[0] is "verbs". Exit status 1 after any error: no device, a lost peer, a wrong byte, a value that was not
// measured.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_verbs
