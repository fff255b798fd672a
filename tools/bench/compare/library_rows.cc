#include "bench_compare/library_rows.h"

#include <cstdio>
#include <memory>
#include <string>

#include "bench_library/side.h"

namespace egret::bench_compare {
namespace {

using base::Status;
using bench_library::Side;

// libegret asks the proxy for its pool, and goes straight to a backend on this host.
base::Expected<std::unique_ptr<Side>> side_of(const bench::Server& server) {
  const std::string address = server.address.to_string();
  if (server.name != kEgret) return bench_library::socket_side(address);
  const std::string proxy = server.address.path.empty() ? "tcp:" + address : address;
  return bench_library::library_side("libegret", {{"proxy", proxy}});
}

Figures figures_of(const bench_library::Row& turn) {
  const double gets = turn.gets > 0 ? static_cast<double>(turn.gets) : 1;
  Figures figures{{kCpu.key, static_cast<double>(turn.own_cpu_ns + turn.server_cpu_ns) / gets / 1000},
                  {kThroughput.key, static_cast<double>(turn.gets) * 1e9 / static_cast<double>(turn.wall_ns)}};
  if (turn.kind == bench_library::Kind::kProcesses) return figures;  // their calls are not timed
  figures[kP50.key] = static_cast<double>(turn.calls.quantile(0.5)) / 1000;
  figures[kP99.key] = static_cast<double>(turn.calls.quantile(0.99)) / 1000;
  return figures;
}

}  // namespace

Status measure_library(const std::vector<bench::Server>& servers, const bench::RoundsSpec& rounds,
                       const std::atomic<bool>& stop, RowResult& result) {
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<bench_library::MeasureOptions> options;
  for (const bench::Server& server : servers) {
    auto side = side_of(server);
    if (!side) return Status::error(server.name + ": " + side.message());
    sides.push_back(std::move(side.value()));
    options.push_back({.seconds = result.row.load.duration_s, .pids = server.pids});
    if (Status filled = bench_library::fill(*sides.back(), options.back()); !filled) return filled;
  }
  for (uint32_t round = 0; round < rounds.rounds && !stop.load(); ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      bench_library::Row turn;
      turn.kind = result.row.library_kind;
      if (Status done = bench_library::run_turn(*sides[i], options[i], turn, stop); !done)
        return Status::error(servers[i].name + ": " + done.message());
      result.series[i].rounds.push_back(figures_of(turn));
      std::fprintf(stderr, "%s, round %u, %s: %.0f gets/s, CPU %.2f us a get\n", result.row.name.c_str(), round + 1,
                   servers[i].name.c_str(), result.series[i].rounds.back().at(kThroughput.key),
                   result.series[i].rounds.back().at(kCpu.key));
    }
  }
  return Status::ok();
}

}  // namespace egret::bench_compare
