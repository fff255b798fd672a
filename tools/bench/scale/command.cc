#include "bench_scale/command.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "bench/load.h"
#include "bench_scale/scale.h"

namespace egret::bench_scale {
namespace {

constexpr uint32_t kMostWorkers = 64;

void add_options(CLI::App& app, ScaleOptions& options, bool& json) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  bench::LoadSpec& load = options.load;
  app.add_option("--spawn-egret", options.egret.binaries, "start the daemons of this folder")->required();
  app.add_option("--conf", options.egret.conf,
                 "folder of egret-backend.yaml and egret-proxy.yaml; default: the repository's or /etc/egret");
  app.add_option("--memcached", options.memcached, "start this memcached command, too; -t N is added");
  app.add_option("--counts", options.counts, "numbers of workers and partitions; default: 1 2 4 … half of the CPUs")
      ->check(CLI::Range(1u, kMostWorkers));
  add("-c,--connections", load.connections, "connections for each worker")->check(CLI::Range(1u, 10'000u));
  add("--threads", load.threads, "generator threads for each worker")->check(CLI::Range(1u, 16u));
  add("-d,--depth", load.depth, "requests of a connection that are unanswered at the same time");
  add("-m,--multiget", load.multiget, "keys per get");
  add("-v,--value-size", load.value_size, "bytes per value");
  add("-k,--keys", load.keys, "number of different keys");
  add("-r,--read-share", load.read_share, "share of the requests that are gets")->check(CLI::Range(0.0, 1.0));
  add("-t,--duration", load.duration_s, "s of each round")->check(CLI::Range(0.01, 3600.0));
  add("--rounds", options.rounds, "rounds of each number")->check(CLI::Range(1u, 100u));
  add("--memory", options.memory_mib, "of each server, MiB");
  app.add_flag("--json", json, "print JSON instead of Markdown");
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  ScaleOptions options;
  options.load.duration_s = 1;
  bool json = false;
  CLI::App app(
      "What an op costs with more and more workers and partitions.\nExit status: 0, or 1 if anything went wrong.",
      "egret-bench scale");
  add_options(app, options, json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  base::Status good = bench::check_spec(options.load);
  auto scaled = good ? measure(options, stop) : base::Expected<Scaled>(good);
  if (!scaled) {
    std::fprintf(stderr, "egret-bench scale: %s\n", scaled.message().c_str());
    return 1;
  }
  const bench_store::Table& table = scaled.value().table;
  std::fputs((json ? to_json(table) : to_markdown(table)).c_str(), stdout);
  if (scaled.value().errors == 0) return 0;
  std::fprintf(stderr, "egret-bench scale: %llu wrong answers\n",
               static_cast<unsigned long long>(scaled.value().errors));
  return 1;
}

}  // namespace egret::bench_scale
