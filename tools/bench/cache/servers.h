// The servers that a comparison is made between, each with the same memory: the subject (Egret, or any memcached-like
// command, or one that runs already) and a memcached beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server.h"

namespace CLI {
class App;
}

namespace egret::bench_cache {

struct ServerOptions {
  std::string connect;      // an address that is served already; its memory is what it is
  std::string spawn;        // a memcached-like command
  bench::EgretFiles egret;  // .binaries not empty: Egret's own daemons
  std::string peer;         // a memcached command
};

void add_server_options(CLI::App& app, ServerOptions& options);

struct Contender {
  std::string name;
  std::function<base::Expected<bench::Server>()> start;
};
// The subject, then the peer; one of them may not be asked for, both is an error. Call `start` on the main thread only.
base::Expected<std::vector<Contender>> contenders(const ServerOptions& options, uint64_t memory_mib);

using Stats = std::map<std::string, uint64_t>;
// The numbers of `stats`; empty if they cannot be had.
Stats read_stats(const bench::Server& server);
uint64_t stat(const Stats& stats, const std::string& name);  // 0 if it is not there

// Resident bytes of the process that holds the items; 0 if it is not one of ours.
uint64_t resident_bytes(const bench::Server& server);

}  // namespace egret::bench_cache
