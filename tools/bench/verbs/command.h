// `egret-bench verbs`: raw verbs between two hosts (or several and one), without Egret. The listening side decides what
// is measured, and prints; the connecting side does what it is told, and prints the same.
#pragma once

#include <atomic>

namespace egret::bench_verbs {

// argv[0] is "verbs". Exit status 1 if anything went wrong: no device, a lost peer, a wrong byte, an empty cell.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_verbs
