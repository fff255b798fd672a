#include "bench_fleet/command.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_fleet/fleet.h"
#include "bench_fleet/report.h"
#include "wire/slot.h"

namespace egret::bench_fleet {
namespace {

using base::Status;

constexpr uint32_t kMostSessions = 16384;

void add_options(CLI::App& app, FleetOptions& options, bool& json) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  app.add_option("--spawn-egret", options.egret.binaries, "start the egret-backend of this folder")->required();
  app.add_option("--conf", options.egret.conf, "folder of egret-backend.yaml; default: the repository's or /etc/egret");
  app.add_option("--backend-set", options.egret.backend_set, "KEY=VALUE for the backend (may be repeated)");
  app.add_option("--sessions", options.sessions, "numbers of sessions of a backend; default: 1 10 100 1000 4000")
      ->check(CLI::Range(1u, kMostSessions));
  app.add_option("--backends", options.backends, "numbers of backends of a proxy's worker; default: 1 10 100")
      ->check(CLI::Range(1u, kMostSessions));
  app.add_option("--restart", options.restarts,
                 "numbers of sessions after which the backend is killed and started again");
  add("--at", options.at, "transport of the sessions: shm, tcp, or an address for the backend (rdma:HOST:PORT)");
  add("--hosts", options.hosts,
      "with --at tcp: the sessions come from so many addresses of 127.0.0.0/8, each of them a peer of the backend")
      ->check(CLI::Range(1u, kMostSessions));
  add("--partitions", options.partitions, "of the backend of --sessions")->check(CLI::Range(1u, 28u));
  add("--lanes", options.lanes, "partitions of each of --backends")->check(CLI::Range(1u, 28u));
  add("--slot-size", options.slot_size, "bytes of a slot, either way")->check(CLI::Range(wire::kMinSlotSize, 65536u));
  add("--window", options.window, "slots per lane")->check(CLI::Range(wire::kMinWindow, wire::kMaxWindow));
  add("--duration", options.seconds, "s of each measurement")->check(CLI::Range(0.01, 3600.0));
  app.add_flag("--json", json, "print JSON instead of Markdown");
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  FleetOptions options;
  bool json = false;
  CLI::App app(
      "What many hosts cost a backend, and many backends a proxy: time to open, memory, passes, latency of one that is "
      "active.\nExit status: 0, or 1 if anything went wrong.",
      "egret-bench fleet");
  add_options(app, options, json);
  try {
    app.parse(argc, argv);
    if (options.hosts > 1 && options.at != "tcp") throw CLI::ValidationError("--hosts", "wants --at tcp");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  Outcome outcome;
  const Status done = measure(options, stop, outcome);
  if (!done) std::fprintf(stderr, "egret-bench fleet: %s\n", done.message().c_str());
  const std::vector<bench_store::Table> tables = tables_of(options, outcome);
  if (json) {
    std::fputs(to_json(tables).c_str(), stdout);
  } else {
    for (const bench_store::Table& table : tables) std::fputs(to_markdown(table).c_str(), stdout);
  }
  return done ? 0 : 1;
}

}  // namespace egret::bench_fleet
