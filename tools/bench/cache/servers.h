// The servers of a comparison, all with the same memory: the subject (Egret, any memcached-like command, or a running
// server) and a memcached.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server/server.h"

namespace CLI {
class App;
}

namespace egret::bench_cache {

struct ServerOptions {
  std::string connect;      // the address of a running server, whose memory is not changed
  std::string spawn;        // a memcached-like command
  bench::EgretFiles egret;  // .binaries not empty: Egret's own daemons
  std::string peer;         // a memcached command
};

void add_server_options(CLI::App& app, ServerOptions& options);

struct Contender {
  std::string name;
  std::function<base::Expected<bench::Server>()> start;
};
// The subject, then the peer. One of them may be absent, but not both. Call `start` on the main thread only.
base::Expected<std::vector<Contender>> contenders(const ServerOptions& options, uint64_t memory_mib);

using Stats = std::map<std::string, uint64_t>;
// The numbers of `stats`; empty on failure.
Stats read_stats(const bench::Server& server);
uint64_t stat(const Stats& stats, const std::string& name);  // 0 if there is no such row

// Resident bytes of the process that stores the items; 0 if we did not start it.
uint64_t resident_bytes(const bench::Server& server);

}  // namespace egret::bench_cache
