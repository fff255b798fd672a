// `egret-bench scale`: its options, and the table that it prints.
#pragma once

#include <atomic>

namespace egret::bench_scale {

// `argv[0]` is the subcommand's name. Returns the exit status. `stop` ends it early.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_scale
