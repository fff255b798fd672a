// `egret-bench hits`, `density` and `growth`: how well a server uses its memory, compared with a memcached with as
// much.
#pragma once

#include <atomic>

namespace egret::bench_cache {

// argv[0] is the subcommand's name. Exit status 1 after any error, even one wrong answer. `stop` ends it early.
int run_hits(int argc, char** argv, const std::atomic<bool>& stop);
int run_density(int argc, char** argv, const std::atomic<bool>& stop);
int run_growth(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_cache
