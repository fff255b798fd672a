// `egret-bench hits`, `density` and `growth`: what a server makes of its memory, beside a memcached with as much.
#pragma once

#include <atomic>

namespace egret::bench_cache {

// argv[0] is the subcommand's name. Exit status 1 if anything went wrong, be it one answer. Ended early by `stop`.
int run_hits(int argc, char** argv, const std::atomic<bool>& stop);
int run_density(int argc, char** argv, const std::atomic<bool>& stop);
int run_growth(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_cache
