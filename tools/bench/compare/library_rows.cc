#include "bench_compare/library_rows.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "bench_compare/preloaded.h"
#include "bench_library/side.h"

namespace egret::bench_compare {
namespace {

using base::Expected;
using base::Status;
using bench_library::Side;

// By libmemcached, since the goals are against such clients. By a plain socket where libmemcached is not installed, and where many
// gets are to be under way: libmemcached has one at a time.
Expected<std::unique_ptr<Side>> side_of_memcached(const std::string& address, bench_library::Kind kind) {
  const bool has_library = bench_library::has_libmemcached() && kind != bench_library::Kind::kPipelined;
  return has_library ? bench_library::libmemcached_side(address) : bench_library::socket_side(address);
}

// libegret asks the proxy for its pool, and goes straight to a backend on this host.
Expected<std::unique_ptr<Side>> side_of(const bench::Server& server, bench_library::Kind kind) {
  const std::string address = server.address.to_string();
  if (server.name != kEgret) return side_of_memcached(address, kind);
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

using Turn = std::function<Expected<Figures>()>;

// Has stored what it will ask for.
Expected<Turn> turn_by_side(const bench::Server& server, const Row& row, const std::atomic<bool>& stop) {
  auto made = side_of(server, row.library_kind);
  if (!made) return made.status();
  const std::shared_ptr<Side> side = std::move(made.value());
  const bench_library::MeasureOptions options{.seconds = row.load.duration_s, .pids = server.pids};
  if (Status filled = bench_library::fill(*side, options); !filled) return filled;
  return Turn([side, options, kind = row.library_kind, &stop]() -> Expected<Figures> {
    bench_library::Row turn;
    turn.kind = kind;
    if (Status done = bench_library::run_turn(*side, options, turn, stop); !done) return done;
    return figures_of(turn);
  });
}

Expected<Turn> turn_of(const bench::Server& server, const Row& row, const std::atomic<bool>& stop) {
  if (row.kind == Kind::kLibrary) return turn_by_side(server, row, stop);
  return Turn([&server, &row, &stop] { return measure_preloaded(server, row, stop); });
}

}  // namespace

Status measure_library(const std::vector<bench::Server>& servers, const bench::RoundsSpec& rounds,
                       const std::atomic<bool>& stop, RowResult& result) {
  std::vector<Turn> turns;
  for (const bench::Server& server : servers) {
    auto turn = turn_of(server, result.row, stop);
    if (!turn) return Status::error(server.name + ": " + turn.message());
    turns.push_back(std::move(turn.value()));
  }
  for (uint32_t round = 0; round < rounds.rounds && !stop.load(); ++round) {
    for (size_t i = 0; i < turns.size() && !stop.load(); ++i) {
      auto figures = turns[i]();
      if (stop.load()) break;
      if (!figures) return Status::error(servers[i].name + ": " + figures.message());
      std::fprintf(stderr, "%s, round %u, %s: %.0f gets/s, CPU %.2f us a get\n", result.row.name.c_str(), round + 1,
                   servers[i].name.c_str(), figures.value().at(kThroughput.key), figures.value().at(kCpu.key));
      result.series[i].rounds.push_back(std::move(figures.value()));
    }
  }
  return Status::ok();
}

}  // namespace egret::bench_compare
