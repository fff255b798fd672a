#include "bench_cache/servers.h"

#include <sstream>

#include <CLI/CLI.hpp>

#include "bench/client/text_client.h"
#include "bench/server/process_meter.h"

namespace egret::bench_cache {
namespace {

using base::Expected;
using base::Status;
using bench::Server;

constexpr double kStatsTimeoutS = 10;

Expected<Server> server_at(const std::string& text) {
  auto address = bench::parse_address(text);
  if (!address) return address.status();
  Server server;
  server.name = text;
  server.address = address.value();
  return server;
}

}  // namespace

void add_server_options(CLI::App& app, ServerOptions& options) {
  const auto group = "Servers";
  auto* connect = app.add_option("--connect", options.connect, "what serves at HOST:PORT or unix:PATH, and is empty");
  auto* spawn = app.add_option("--spawn", options.spawn, "start this memcached command");
  auto* egret = app.add_option("--spawn-egret", options.egret.binaries, "start DIR/egret-backend and DIR/egret-proxy");
  connect->excludes(spawn)->excludes(egret)->group(group);
  spawn->excludes(egret)->group(group);
  egret->group(group);
  app.add_option("--conf", options.egret.conf, "folder of egret-backend.yaml and egret-proxy.yaml")
      ->needs(egret)
      ->group(group);
  app.add_option("--backend-set", options.egret.backend_set, "KEY=VALUE passed to egret-backend --set")
      ->needs(egret)
      ->group(group);
  app.add_option("--proxy-set", options.egret.proxy_set, "KEY=VALUE passed to egret-proxy --set")
      ->needs(egret)
      ->group(group);
  app.add_option("--peer", options.peer, "start this memcached command too, with the same memory")->group(group);
}

Expected<std::vector<Contender>> contenders(const ServerOptions& options, uint64_t memory_mib) {
  std::vector<Contender> found;
  if (!options.connect.empty()) {
    found.push_back({options.connect, [text = options.connect] { return server_at(text); }});
  } else if (!options.spawn.empty()) {
    found.push_back(
        {options.spawn, [=, command = options.spawn] { return bench::start_memcached(command, memory_mib); }});
  } else if (!options.egret.binaries.empty()) {
    bench::EgretFiles files = options.egret;
    files.backend_set.push_back("memory=" + std::to_string(memory_mib) + "MiB");
    found.push_back({"Egret", [files] { return bench::start_egret(files); }});
  }
  if (!options.peer.empty()) {
    const std::string name = found.empty() || found[0].name != options.peer ? options.peer : options.peer + " (peer)";
    found.push_back({name, [=, command = options.peer] { return bench::start_memcached(command, memory_mib); }});
  }
  if (found.empty()) return Status::error("nothing to measure: give --connect, --spawn, --spawn-egret or --peer");
  return found;
}

Stats read_stats(const Server& server) {
  Stats stats;
  const auto answer = bench::exchange(server.address, "stats\r\n", "END\r\n", kStatsTimeoutS);
  if (!answer) return stats;
  std::istringstream words(answer.value());
  for (std::string word, name, value; words >> word && word == "STAT" && words >> name && std::getline(words, value);) {
    stats[name] = std::strtoull(value.c_str(), nullptr, 10);
  }
  return stats;
}

uint64_t stat(const Stats& stats, const std::string& name) {
  const auto found = stats.find(name);
  return found == stats.end() ? 0 : found->second;
}

uint64_t resident_bytes(const Server& server) {
  return server.pids.empty() ? 0 : bench::resident_bytes(server.pids.front());
}

}  // namespace egret::bench_cache
