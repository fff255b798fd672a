// `egret-bench rpc`: what the backend alone does, and how that falls with the number of sessions.
#pragma once

#include <atomic>

namespace egret::bench_rpc {

// argv[0] is the subcommand's name. Exit status 1 if anything went wrong, be it one answer. Ended early by `stop`.
int run(int argc, char** argv, const std::atomic<bool>& stop);

}  // namespace egret::bench_rpc
