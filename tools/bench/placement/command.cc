#include "bench_placement/command.h"

#include <cstdio>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench_placement/measure.h"
#include "bench_placement/report.h"
#include "pool/member.h"

namespace egret::bench_placement {

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  MeasureOptions options;
  bool json = false;
  CLI::App app(
      "The rules of placement compared, in this process and without servers: how evenly keys are spread, how many "
      "move\nwhen the members change, and what a key costs.",
      "egret-bench placement");
  app.add_option("--members", options.sizes, "sizes of pools; default: 3 5 10 11 24 25 64 100 300 1000")
      ->check(CLI::Range(size_t{2}, pool::kMaxMembers - 1));
  app.add_option("--keys", options.keys, "keys that are placed")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1000}, size_t{1'000'000'000}));
  app.add_flag("--json", json, "print JSON instead of Markdown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  const Outcome outcome = measure(options, stop);
  const std::vector<bench_store::Table> tables = tables_of(options, outcome);
  if (json) {
    std::fputs(to_json(tables).c_str(), stdout);
  } else {
    for (const bench_store::Table& table : tables) std::fputs(to_markdown(table).c_str(), stdout);
  }
  if (stop.load()) std::fputs("egret-bench placement: interrupted: rows are missing\n", stderr);
  return stop.load() ? 1 : 0;
}

}  // namespace egret::bench_placement
