#include "bench_library/command.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_library/measure.h"
#include "bench_library/side.h"

namespace egret::bench_library {

namespace {

const char* text_of(Kind kind) {
  switch (kind) {
    case Kind::kGet:
      return "get, one at a time";
    case Kind::kPaced:
      return "get, one a ms";
    case Kind::kMultiget:
      return "multiget of 50";
    case Kind::kPipelined:
      return "32 gets under way";
    default:
      return "50 processes";
  }
}

double per_get(uint64_t ns, const Row& row) {
  return row.gets == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(row.gets) / 1000;
}

// In us; "-": calls were not timed.
std::string quantile(const Row& row, double share) {
  if (row.kind == Kind::kProcesses) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", static_cast<double>(row.calls.quantile(share)) / 1000);
  return text.data();
}

void print(const std::vector<std::unique_ptr<Row>>& rows, bool has_pids) {
  std::printf(
      "| what | by | gets/s | p50 of a call, us | p99, us | CPU of the client a get, us | of the servers, us |\n");
  std::printf("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto& row : rows) {
    const double seconds = static_cast<double>(row->wall_ns) / 1e9;
    const std::string servers = has_pids ? std::to_string(per_get(row->server_cpu_ns, *row)).substr(0, 5) : "-";
    std::printf("| %s | %s | %.0f | %s | %s | %.2f | %s |\n", text_of(row->kind), row->side->name().c_str(),
                seconds > 0 ? static_cast<double>(row->gets) / seconds : 0, quantile(*row, 0.5).c_str(),
                quantile(*row, 0.99).c_str(), per_get(row->own_cpu_ns, *row), servers.c_str());
  }
}

int fail(const std::string& why) {
  std::fprintf(stderr, "egret-bench client: %s\n", why.c_str());
  return 1;
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  MeasureOptions options;
  std::string backends;
  std::string proxy;
  std::vector<std::string> sockets;
  CLI::App app(
      "The same gets by libegret, straight to the backends' slots, and by memcached's protocol over sockets, in turn;\n"
      "every answer is checked. It sets keys that begin with \"client:\".",
      "egret-bench client");
  app.add_option("--backends", backends, "backends as libegret's option: shm:PATH, rdma:HOST:PORT, tcp:HOST:PORT");
  app.add_option(
      "--proxy", proxy,
      "a proxy of this host, tcp:HOST:PORT or unix:PATH: by libegret as it is told there, and relayed by the proxy");
  app.add_option("--socket", sockets, "a server that speaks memcached's protocol: HOST:PORT or unix:PATH");
  app.add_option("--pids", options.pids, "processes whose CPU is the servers'");
  app.add_option("--seconds", options.seconds, "of a turn")->capture_default_str()->check(CLI::Range(0.01, 3600.0));
  app.add_option("--rounds", options.rounds, "of turns")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--keys", options.keys, "")->capture_default_str()->check(CLI::Range(100, 10'000'000));
  app.add_option("--value", options.value_bytes, "bytes")->capture_default_str()->check(CLI::Range(16, 4096));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  std::vector<std::pair<std::string, LibraryOptions>> libraries;
  if (!backends.empty()) libraries.emplace_back("libegret", LibraryOptions{{"backends", backends}});
  if (!proxy.empty()) {
    libraries.emplace_back("libegret, told by the proxy", LibraryOptions{{"proxy", proxy}});
    libraries.emplace_back("libegret, relayed", LibraryOptions{{"proxy", proxy}, {"straight", "none"}});
  }
  if (libraries.empty() && sockets.empty()) return fail("give --backends, --proxy, --socket, or several of them");
  std::vector<std::unique_ptr<Side>> sides;
  for (const auto& [name, given] : libraries) {
    auto side = library_side(name, given);
    if (!side) return fail(side.message());
    sides.push_back(std::move(side.value()));
  }
  for (const std::string& address : sockets) {
    auto side = socket_side(address);
    if (!side) return fail(address + ": " + side.message());
    sides.push_back(std::move(side.value()));
  }
  auto rows = measure(sides, options, stop);
  if (!rows) return fail(rows.message());
  print(rows.value(), !options.pids.empty());
  return stop.load() ? fail("interrupted") : 0;
}

}  // namespace egret::bench_library
