// store-bench: the command line, and nothing else.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_store/machine.h"
#include "bench_store/model.h"
#include "bench_store/speed.h"
#include "bench_store/steps.h"
#include "bench_store/table.h"

namespace egret::bench_store {
namespace {

struct Options {
  bool json = false;
  bool model = false;
  bool steps = false;
  bool huge = true;
  std::string only;
  SpeedOptions speed_options;
  ModelOptions model_options;
  StepsOptions steps_options;
};

int run(const Options& options) {
  if (!options.huge && !forbid_huge_pages()) {
    std::perror("store-bench: huge pages cannot be forbidden");
    return 1;
  }
  std::vector<Table> tables;
  uint64_t wrong = 0;
  if (options.model) {
    tables.push_back(run_model(options.model_options, wrong));
  } else if (options.steps) {
    tables.push_back(run_steps(options.steps_options, wrong));
  } else {
    tables = run_speed(options.speed_options, wrong);
  }
  if (options.json) {
    std::fputs(to_json(tables).c_str(), stdout);
  } else {
    for (const Table& table : tables) std::fputs(to_markdown(table).c_str(), stdout);
  }
  if (wrong != 0) std::fprintf(stderr, "store-bench: %llu wrong answers\n", static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

void add_speed_options(CLI::App& app, Options& options) {
  const auto group = "Speed (the default)";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group(group);
  };
  SpeedOptions& speed = options.speed_options;
  add("--items", speed.items, "items in the store")->check(CLI::Range(1u, 1u << 30));
  add("--memory", speed.memory_mib, "MiB of the store; 0: what the items need and a tenth more");
  add("--value-size", speed.value_size, "bytes")->check(CLI::Range(20, 1 << 13));
  add("--rounds", speed.probes.rounds, "measurements of each case; the median counts")->check(CLI::PositiveNumber);
  add("--seconds", speed.probes.seconds, "CPU time of a measurement")->check(CLI::PositiveNumber);
  add("--peer-items", speed.peer_items, "items of the hash map to compare with, at most; 0: none");
  app.add_flag("!--no-large-values", speed.large_values, "no second store, of 1 KiB values")->group(group);
}

void add_model_options(CLI::App& app, Options& options) {
  const auto group = "Miss ratios";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group(group);
  };
  ModelOptions& model = options.model_options;
  app.add_flag("--model", options.model, "replay the traces that the design was chosen by")->group(group);
  add("--keys", model.keys, "different keys; five times as many where memory is 1 %");
  add("--requests-per-key", model.requests_per_key, "half of them warm up");
  add("--requests-per-second", model.requests_per_second, "of the clock that expiry goes by");
  add("--ops-per-pass", model.ops_per_pass, "ops to one begin_pass()")->check(CLI::PositiveNumber);
  add("--seed", model.seed, "of all random choices");
}

void add_steps_options(CLI::App& app, Options& options) {
  const auto group = "Steps";
  StepsOptions& steps = options.steps_options;
  app.add_flag("--steps", options.steps, "the wall time of single calls, in a full store")->group(group);
  app.add_option("--steps-memory", steps.memory_mib, "MiB of the store")
      ->check(CLI::Range(16, 1 << 14))
      ->capture_default_str()
      ->group(group);
  app.add_option("--steps-seconds", steps.seconds, "measured")->capture_default_str()->group(group);
}

bool parse_options(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app("What the store of one partition costs and holds, in one process and thread.", "store-bench");
  try {
    app.add_flag("--json", options.json, "print JSON instead of Markdown");
    app.add_option("--only", options.only, "only rows of speed or miss ratios whose name contains this");
    app.add_option("--huge", options.huge, "on or off: may this process have transparent huge pages?")
        ->default_str("on");
    add_speed_options(app, options);
    add_model_options(app, options);
    add_steps_options(app, options);
    app.parse(argc, argv);
    options.speed_options.probes.only = options.only;
    options.model_options.only = options.only;
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  return true;
}

}  // namespace
}  // namespace egret::bench_store

int main(int argc, char** argv) try {
  egret::bench_store::Options options;
  int exit_status = 0;
  if (!egret::bench_store::parse_options(argc, argv, options, exit_status)) return exit_status;
  return egret::bench_store::run(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "store-bench: %s\n", error.what());
  return 1;
}
