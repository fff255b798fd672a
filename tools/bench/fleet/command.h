// `egret-bench fleet`: what many hosts cost a backend, and many backends a proxy.
#pragma once

#include <atomic>

namespace egret::bench_fleet {

// argv[0] is the subcommand's name. Exit status 1 after any error. `stop` ends it early.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_fleet
