// `egret-bench rpc`: the throughput of the backend alone, and how it falls with the number of sessions.
#pragma once

#include <atomic>

namespace egret::bench_rpc {

// argv[0] is the subcommand's name. Exit status 1 after any error, even one wrong answer. `stop` ends it early.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_rpc
