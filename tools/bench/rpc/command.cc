#include "bench_rpc/command.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_rpc/items.h"
#include "bench_rpc/measure.h"
#include "bench_rpc/report.h"
#include "op/op.h"
#include "wire/slot.h"

namespace egret::bench_rpc {
namespace {

using base::Status;

constexpr uint32_t kMostKeys = 1u << 30;
constexpr uint32_t kMostSessions = 16384;

struct Options {
  MeasureOptions measure;
  double read_share = 0.95;
  bool json = false;
};

void add_options(CLI::App& app, Options& options) {
  MeasureOptions& measure = options.measure;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  app.add_option("--spawn-egret", measure.egret.binaries, "start the egret-backend of this folder")->required();
  app.add_option("--conf", measure.egret.conf, "folder of egret-backend.yaml; default: the repository's or /etc/egret");
  app.add_option("--backend-set", measure.egret.backend_set, "KEY=VALUE for the backend (may be repeated)");
  add("--keys", measure.keys, "items in the backend")->check(CLI::Range(1u, kMostKeys));
  add("--value-size", measure.value_size, "bytes of a value, a multiple of 8")
      ->check(CLI::Range(24u, Items::kMaxValueSize));
  add("--read-share", options.read_share, "gets; the others are sets: 0.95 or 1")
      ->check(CLI::IsMember(std::vector<double>{0.95, 1.0}));
  add("--ops-per-message", measure.ops_per_message, "at most; 0: as many as a message takes")
      ->check(CLI::Range(0u, wire::kMaxOpsPerMessage));
  add("--partitions", measure.partitions, "of the backend")->check(CLI::Range(1u, wire::kMaxLanes));
  add("--window", measure.window, "slots per lane")->check(CLI::Range(wire::kMinWindow, wire::kMaxWindow));
  app.add_option("--sessions", measure.sessions, "numbers of sessions, ascending; default: 1 16 256 1024 4096")
      ->check(CLI::Range(1u, kMostSessions));
  add("--turn", measure.turn_ms, "ms that a session is active, where they are so in turn")
      ->check(CLI::Range(1u, 1'000'000u));
  add("--duration", measure.seconds, "s of each measurement")->check(CLI::Range(0.001, 3600.0));
  add("--rounds", measure.rounds, "of measurements in turn; medians count")->check(CLI::PositiveNumber);
  app.add_flag("!--no-store", measure.measures_store, "leave out the store in this process");
  app.add_flag("--json", options.json, "print JSON instead of Markdown");
}

Status check(const Options& options) {
  if (options.measure.value_size % 8 != 0) return Status::error("--value-size: expected a multiple of 8");
  if (!std::ranges::is_sorted(options.measure.sessions)) return Status::error("--sessions: expected ascending numbers");
  return Status::ok();
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Options options;
  CLI::App app(
      "The backend alone, driven by rpc-level clients over shared memory, beside its store in one process.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer.",
      "egret-bench rpc");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  options.measure.ops_per_set = options.read_share < 1 ? 20 : 0;
  Outcome outcome;
  uint64_t errors = 0;
  Status done = check(options);
  if (done) done = measure(options.measure, stop, outcome, errors);
  if (!done) std::fprintf(stderr, "egret-bench rpc: %s\n", done.message().c_str());
  if (errors != 0)
    std::fprintf(stderr, "egret-bench rpc: %llu wrong answers\n", static_cast<unsigned long long>(errors));
  const std::vector<bench_store::Table> tables = tables_of(options.measure, outcome);
  if (options.json) {
    std::fputs(to_json(tables).c_str(), stdout);
  } else {
    for (const bench_store::Table& table : tables) std::fputs(to_markdown(table).c_str(), stdout);
  }
  return done && errors == 0 ? 0 : 1;
}

}  // namespace egret::bench_rpc
