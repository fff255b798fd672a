// The compared servers: Egret's two daemons, Egret as one process, both of another commit, memcached with one thread,
// twemproxy with such a memcached behind it. Each can be started repeatedly, over TCP or a Unix socket, all with as
// much memory as Egret reports.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server/server.h"

namespace egret::bench_compare {

struct ContenderOptions {
  bench::EgretFiles egret;
  std::string base;       // folder of another commit's programs, ../conf beside it has their configuration; empty: none
  std::string base_name;  // of that commit
  bool one_process = false;  // egret-memcached takes part, and the base's
  std::string memcached = "memcached -t 1";
  std::string twemproxy = "nutcracker";
  const bench::FarHost* far = nullptr;  // where backends and memcacheds run; null: here
};

struct Contender {
  std::string name;
  std::string version;
  std::string command;  // the command, without its folder; empty: Egret
  bool speaks_binary = true;
  std::function<base::Expected<bench::Server>(bench::SocketKind)> start;  // main thread only
};

struct Contenders {
  std::vector<Contender> present;     // Egret first
  std::vector<std::string> left_out;  // a line for each that is not installed
};

// Starts Egret and memcached once, to learn their versions and the memory. Fails when Egret or an installed peer does
// not serve.
base::Expected<Contenders> find_contenders(const ContenderOptions& options);

}  // namespace egret::bench_compare
