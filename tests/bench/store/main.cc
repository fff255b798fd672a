// store-bench: the command line, and nothing else.
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_store/model.h"
#include "bench_store/table.h"

namespace egret::bench_store {
namespace {

struct Options {
  bool json = false;
  bool model = false;
  ModelOptions model_options;
};

int run(const Options& options) {
  std::vector<Table> tables;
  uint64_t wrong = 0;
  tables.push_back(run_model(options.model_options, wrong));
  if (options.json) {
    std::fputs(to_json(tables).c_str(), stdout);
  } else {
    for (const Table& table : tables) std::fputs(to_markdown(table).c_str(), stdout);
  }
  if (wrong != 0) std::fprintf(stderr, "store-bench: %llu wrong answers\n", static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace egret::bench_store

int main(int argc, char** argv) {
  egret::bench_store::Options options;
  CLI::App app("What the store of one partition costs and holds, in one process and thread.", "store-bench");
  app.add_flag("--json", options.json, "print JSON instead of Markdown");
  const auto group = "Miss ratios";
  auto& model = options.model_options;
  app.add_flag("--model", options.model, "replay the traces that the design was chosen by")->group(group);
  app.add_option("--keys", model.keys, "different keys; five times as many where memory is 1 %")
      ->capture_default_str()
      ->group(group);
  app.add_option("--requests-per-key", model.requests_per_key, "half of them warm up")
      ->capture_default_str()
      ->group(group);
  app.add_option("--requests-per-second", model.requests_per_second, "of the clock that expiry goes by")
      ->capture_default_str()
      ->group(group);
  app.add_option("--ops-per-pass", model.ops_per_pass, "ops to one begin_pass()")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--only", model.only, "only rows whose name contains this")->group(group);
  app.add_option("--seed", model.seed, "of all random choices")->capture_default_str()->group(group);
  CLI11_PARSE(app, argc, argv);
  return egret::bench_store::run(options);
}
