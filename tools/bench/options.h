// The command line of `egret-bench [run]`.
#pragma once

#include <string>
#include <vector>

#include "bench/load_spec.h"
#include "bench/rounds.h"
#include "bench/server/server.h"

namespace egret::bench {

struct Options {
  LoadSpec load;
  // The subject: at most one of the three.
  std::string connect;    // the address of a running server
  std::vector<int> pids;  // with `connect`: the processes to measure
  std::string spawn;      // a memcached-like command
  EgretFiles egret;       // .binaries not empty: Egret's own daemons
  std::string peer;       // a memcached command
  uint64_t peer_memory_mib = 0;
  RoundsSpec rounds;
  bool suite = false;
  std::vector<std::string> cases;  // of the suite; empty: all
  bool json = false;
};

// False: exit with `exit_status` (help or an error was printed).
bool parse_options(int argc, char** argv, Options& options, int& exit_status);

}  // namespace egret::bench
