#include "bench_cache/command.h"

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_cache/density.h"
#include "bench_cache/growth.h"
#include "bench_cache/hits.h"
#include "bench_cache/servers.h"
#include "bench_cache/table.h"

namespace egret::bench_cache {
namespace {

using base::Status;

using Measure = std::function<Status(const std::vector<Contender>&, std::vector<Table>&, uint64_t& errors)>;

// What was measured is printed even if it ended early; then the exit status says so.
int run(CLI::App& app, int argc, char** argv, const ServerOptions& servers, const std::function<uint64_t()>& memory_mib,
        const Measure& measure) {
  bool json = false;
  app.add_flag("--json", json, "print JSON instead of Markdown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  std::vector<Table> tables;
  uint64_t errors = 0;
  auto sides = contenders(servers, memory_mib());
  const Status good = sides ? measure(sides.value(), tables, errors) : sides.status();
  if (!good) {
    ++errors;
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), good.message().c_str());
  }
  if (errors != 0)
    std::fprintf(stderr, "%s: %llu errors\n", app.get_name().c_str(), static_cast<unsigned long long>(errors));
  std::fputs((json ? to_json(tables, errors) : to_markdown(tables)).c_str(), stdout);
  return errors == 0 ? 0 : 1;
}

int unless_stopped(int exit_status, const std::atomic<bool>& stop) {
  if (!stop.load()) return exit_status;
  std::fputs("egret-bench: interrupted: the figures are incomplete\n", stderr);
  return 1;
}

constexpr double kMaxShare = 1e6;

}  // namespace

int run_hits(int argc, char** argv, const std::atomic<bool>& stop) {
  HitsOptions options;
  CLI::App app(
      "Replays the same trace to servers with equal memory, checks every answer, and says how often each misses.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer.",
      "egret-bench hits");
  add_server_options(app, options.servers);
  app.add_option("--memory", options.memory_mib, "MiB of each server")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--fraction", options.fraction, "memory / footprint of all keys")
      ->check(CLI::Range(0.001, 10.0))
      ->capture_default_str();
  app.add_flag_callback(
      "--data-footprint", [&options] { options.footprint = Footprint::kData; },
      "the footprint is that of keys and values alone, not what memcached would need for them");
  app.add_option("--warmup", options.warmup, "requests before those that count, in multiples of the keys")
      ->check(CLI::Range(0.0, kMaxShare))
      ->capture_default_str();
  app.add_option("--requests", options.requests, "requests that count, in multiples of the keys")
      ->check(CLI::Range(0.0, kMaxShare))
      ->capture_default_str();
  app.add_option("--ttl-duration", options.ttl_duration_s,
                 "seconds that a mix with TTLs lasts: it is paced, alike for all")
      ->check(CLI::Range(0.1, 1e5))
      ->capture_default_str();
  app.add_option("--ttl-scale", options.ttl_scale, "TTLs are 20 s to 1 h times this")
      ->check(CLI::Range(0.001, 18.0))
      ->capture_default_str();
  app.add_option("--mix", options.mixes,
                 "only the mix of this name, or those whose name contains this (may be repeated)");
  app.add_option("--seed", options.seed, "of the traces")->capture_default_str();
  const auto measure = [&](const auto& sides, auto& tables, uint64_t& errors) {
    return measure_hits(options, sides, stop, tables, errors);
  };
  return unless_stopped(run(
                            app, argc, argv, options.servers, [&] { return options.memory_mib; }, measure),
                        stop);
}

int run_density(int argc, char** argv, const std::atomic<bool>& stop) {
  DensityOptions options;
  CLI::App app(
      "Stores more items than fit, counts those that are there by reading back, and says what an item costs.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer.",
      "egret-bench density");
  add_server_options(app, options.servers);
  app.add_option("--memory", options.memory_mib, "MiB of each server")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--value-size", options.value_size, "bytes of a value")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--overfill", options.overfill, "items stored / items that fit with 24 B beyond key and value")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  const auto measure = [&](const auto& sides, auto& tables, uint64_t& errors) {
    return measure_density(options, sides, stop, tables, errors);
  };
  return unless_stopped(run(
                            app, argc, argv, options.servers, [&] { return options.memory_mib; }, measure),
                        stop);
}

int run_growth(int argc, char** argv, const std::atomic<bool>& stop) {
  GrowthOptions options;
  CLI::App app(
      "Inserts new items while another client gets some on schedule, and says how long the gets took.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer.",
      "egret-bench growth");
  add_server_options(app, options.servers);
  app.add_option("--items", options.items, "items that are inserted")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4'000'000'000}))
      ->capture_default_str();
  app.add_option("--memory", options.memory_mib, "MiB of each server; 0: enough for all items in either")
      ->capture_default_str();
  app.add_option("--value-size", options.value_size, "bytes of a value")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--insert-rate", options.insert_rate, "items/s; 0: as fast as answers come")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--get-rate", options.get_rate, "gets/s")->check(CLI::Range(1.0, 1e6))->capture_default_str();
  app.add_option("--slices", options.slices, "parts of the insertion with figures of their own")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  const auto measure = [&](const auto& sides, auto& tables, uint64_t& errors) {
    return measure_growth(options, sides, stop, tables, errors);
  };
  return unless_stopped(run(
                            app, argc, argv, options.servers, [&] { return growth_memory_mib(options); }, measure),
                        stop);
}

}  // namespace egret::bench_cache
