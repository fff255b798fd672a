// The way of a comparison:
//
//   options -> find_contenders -> measure_row of each row, measure_sweep of each sweep -> Report -> Markdown, JSON
#include "bench_compare/command.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/client/idle_connections.h"
#include "bench_compare/contenders.h"
#include "bench_compare/measure.h"
#include "bench_compare/report.h"
#include "bench_compare/rows.h"
#include "bench_library/side.h"

namespace egret::bench_compare {
namespace {

using base::Status;

constexpr double kWarmupShare = 0.25;  // of the duration, so that short runs stay short
constexpr uint32_t kSweepRounds = 3;   // a curve needs less than a verdict

struct Options {
  ContenderOptions contenders;
  bench::RoundsSpec rounds{5, 0};
  bench::LoadSpec load;
  bool sweep = false;
  bool namespaces = false;
  std::string congestion = "reno";  // every kernel has it, and every namespace may choose it
  std::vector<std::string> cases;
  std::string json_file;
  std::string markdown_file;

  Options() { load.duration_s = 0.6; }
};

void add_server_options(CLI::App& app, ContenderOptions& options) {
  const auto group = "Servers";
  app.add_option("--spawn-egret", options.egret.binaries, "start DIR/egret-backend and DIR/egret-proxy")
      ->required()
      ->group(group);
  app.add_option("--conf", options.egret.conf,
                 "folder of their .yaml files (default: conf, DIR/../../conf or /etc/egret)")
      ->group(group);
  app.add_option("--backend-set", options.egret.backend_set, "KEY=VALUE passed to egret-backend --set")->group(group);
  app.add_option("--proxy-set", options.egret.proxy_set, "KEY=VALUE passed to egret-proxy --set")->group(group);
  app.add_option("--base", options.base,
                 "folder of another commit's egret-backend and egret-proxy, which take part as \"base\", and with "
                 "--one-process of its egret-memcached; their .yaml files are in DIR/../conf")
      ->group(group);
  app.add_option("--base-name", options.base_name, "what the tables call that commit")->group(group);
  app.add_flag("--one-process", options.one_process, "DIR/egret-memcached -t 1 takes part, too")->group(group);
  app.add_option("--memcached", options.memcached, "command of memcached")->capture_default_str()->group(group);
  app.add_option("--twemproxy", options.twemproxy, "command of twemproxy")->capture_default_str()->group(group);
}

bool parse(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app(
      "Starts Egret, memcached, and twemproxy with a memcached behind it, puts the same loads on them in turn, by "
      "clients\n"
      "that go on at once and by clients in rounds, checks every answer, and prints what each op costs beside the "
      "goals. A peer that is not installed is left out.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer. Goals that are missed do not count as that.",
      "egret-bench compare");
  add_server_options(app, options.contenders);
  app.add_option("--rounds", options.rounds.rounds, "rounds of all contenders in turn")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("-t,--duration", options.load.duration_s, "seconds of each run")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--quiet", options.rounds.quiet_cpus,
                 "run a round again in which others kept more CPUs busy than this, such as 0.3; 0: never")
      ->capture_default_str();
  app.add_option("--case", options.cases, "only the rows and sweeps whose name contains this (may be repeated)");
  app.add_flag(
      "--namespaces", options.namespaces,
      "between two hosts: backends (at tcp: addresses) and memcacheds in a network namespace of their own, the "
      "rest in another; rows over TCP, goals against twemproxy. Takes root");
  app.add_option("--congestion", options.congestion,
                 "with --namespaces: TCP's congestion control in both, whatever this host's is")
      ->capture_default_str()
      ->check([](const std::string& name) {
        const bool is_name =
            !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c); });
        return is_name ? std::string() : "not a name: " + name;
      });
  app.add_flag("--sweep", options.sweep, "measure latency against throughput, too");
  app.add_option("--json", options.json_file, "write all figures to this file");
  app.add_option("--markdown", options.markdown_file, "write the tables to this file, not to standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  options.load.warmup_s = options.load.duration_s * kWarmupShare;
  return true;
}

bool is_wanted(const std::string& name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(),
                                      [&name](const auto& part) { return name.find(part) != std::string::npos; });
}

// Those that this host can measure; a line says what is left out.
std::vector<Row> possible_rows(const Options& options, Report& report) {
  if (options.namespaces) return rows_between_hosts(options.load);
  std::vector<Row> rows = all_rows(options.load);
  const Status has_libmemcached = bench_library::has_libmemcached();
  const bool has_preloader = bench::is_installed(options.contenders.egret.binaries + "/egret-run");
  if (has_libmemcached && has_preloader) return rows;
  std::erase_if(rows, [](const Row& row) { return row.kind == Kind::kPreloaded; });
  report.contenders.left_out.push_back(
      "preloaded libmemcached is left out" +
      (has_libmemcached ? ": egret-run is not there"
                        : ", and libegret is beside one socket to memcached: " + has_libmemcached.message()));
  return rows;
}

Status measure_all(const Options& options, const std::vector<Row>& rows, const std::atomic<bool>& stop,
                   Report& report) {
  for (const Row& row : rows) {
    if (!is_wanted(row.name, options.cases) || stop.load()) continue;
    auto result = measure_row(row, report.contenders.present, options.rounds, stop);
    if (!result) return Status::error(row.name + ": " + result.message());
    report.rows.push_back(std::move(result.value()));
  }
  if (!options.sweep) return Status::ok();
  bench::RoundsSpec rounds = options.rounds;
  rounds.rounds = std::min(rounds.rounds, kSweepRounds);
  for (const Sweep& sweep : all_sweeps(options.load)) {
    if (!is_wanted(sweep.name, options.cases) || stop.load()) continue;
    auto result = measure_sweep(sweep, report.contenders.present, rounds, stop);
    if (!result) return Status::error("sweep, " + sweep.name + ": " + result.message());
    report.sweeps.push_back(std::move(result.value()));
  }
  return Status::ok();
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status::ok() : Status::error("cannot write " + path);
}

Status write_files(const Options& options, const Report& report) {
  if (!options.json_file.empty()) {
    if (Status status = write_file(options.json_file, to_json(report)); !status) return status;
  }
  return options.markdown_file.empty() ? Status::ok() : write_file(options.markdown_file, to_markdown(report));
}

int fail(const std::string& why) {
  std::fprintf(stderr, "egret-bench compare: %s\n", why.c_str());
  return 1;
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Options options;
  int exit_status = 0;
  if (!parse(argc, argv, options, exit_status)) return exit_status;
  bench::raise_file_limit();
  Report report;
  report.rounds = options.rounds;
  report.duration_s = options.load.duration_s;
  report.is_between_hosts = options.namespaces;
  report.congestion = options.congestion;
  std::unique_ptr<bench::FarHost> far;
  if (options.namespaces) {
    auto made = bench::FarHost::make(options.congestion);
    if (!made) return fail("--namespaces: " + made.message());
    far = std::move(made.value());
    options.contenders.far = far.get();
  }
  auto contenders = find_contenders(options.contenders);
  if (!contenders) return fail(contenders.message());
  report.contenders = std::move(contenders.value());
  const std::vector<Row> rows = possible_rows(options, report);
  for (const std::string& each : report.contenders.left_out) std::fprintf(stderr, "%s\n", each.c_str());
  const Status measured = measure_all(options, rows, stop, report);
  if (options.markdown_file.empty()) std::fputs(to_markdown(report).c_str(), stdout);
  if (!measured) return fail(measured.message());
  if (stop.load()) return fail("interrupted: the figures are incomplete");
  if (report.rows.empty() && report.sweeps.empty()) return fail("no row has such a name");
  if (const Status written = write_files(options, report); !written) return fail(written.message());
  return report.errors() == 0 ? 0 : fail(std::to_string(report.errors()) + " errors");
}

}  // namespace egret::bench_compare
