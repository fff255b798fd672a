// egret-bench: the command line, and nothing else. A subcommand is one row of kCommands; without a name it is `run`.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/duel.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench_cache/command.h"
#include "bench_compare/command.h"
#include "bench_fleet/command.h"
#include "bench_library/command.h"
#include "bench_paradigms/command.h"
#include "bench_placement/command.h"
#include "bench_plot/command.h"
#include "bench_rpc/command.h"
#include "bench_scale/command.h"
#include "bench_verbs/command.h"

namespace egret::bench {
namespace {

std::atomic<bool> g_stop{false};  // set by SIGINT and SIGTERM: runs end early, and servers are ended
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void stop_on_signal(int /*signal*/) {
  g_stop.store(true);
}

Sides sides_of(const Options& options) {
  Sides sides;
  sides.peer_command = options.peer;
  sides.peer_memory_mib = options.peer_memory_mib;
  sides.rounds = options.rounds;
  if (!options.spawn.empty()) {
    sides.start_subject = [&options] { return start_memcached(options.spawn, options.peer_memory_mib); };
  } else if (!options.egret.binaries.empty()) {
    sides.start_subject = [&options] { return start_egret(options.egret); };
  } else if (!options.connect.empty()) {
    sides.start_subject = [&options]() -> base::Expected<Server> {
      auto address = parse_address(options.connect);
      if (!address) return address.status();
      Server server;
      server.name = options.connect;
      server.address = address.value();
      server.pids.assign(options.pids.begin(), options.pids.end());
      return server;
    };
  }
  return sides;
}

std::vector<SuiteCase> cases_of(const Options& options) {
  if (!options.suite) return {{"run", options.load}};
  std::vector<SuiteCase> cases = suite_cases(options.load);
  std::erase_if(cases, [&options](const SuiteCase& each) {
    return !options.cases.empty() &&
           std::none_of(options.cases.begin(), options.cases.end(),
                        [&each](const auto& part) { return each.name.find(part) != std::string::npos; });
  });
  return cases;
}

int run(int argc, char** argv) {
  Options options;
  int exit_status = 0;
  if (!parse_options(argc, argv, options, exit_status)) return exit_status;
  const Sides sides = sides_of(options);
  std::vector<CaseResult> results;
  uint64_t errors = 0;
  for (const SuiteCase& each : cases_of(options)) {
    auto result = run_case(each.name, each.spec, sides, g_stop);
    if (!result) {
      std::fprintf(stderr, "egret-bench: %s: %s\n", each.name.c_str(), result.message().c_str());
      ++errors;
      break;
    }
    errors += result.value().errors();
    results.push_back(std::move(result.value()));
    if (g_stop.load()) break;
  }
  const std::string report = options.json ? to_json(results) : to_markdown(results);
  std::fputs(report.c_str(), stdout);
  if (g_stop.load()) std::fputs("egret-bench: interrupted: the figures are incomplete\n", stderr);
  return errors == 0 && !g_stop.load() ? 0 : 1;
}

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);  // argv[0] is the command's name
};
int run_compare(int argc, char** argv) {
  return bench_compare::run(argc, argv, g_stop);
}
int run_verbs(int argc, char** argv) {
  return bench_verbs::run(argc, argv, g_stop);
}
int run_hits(int argc, char** argv) {
  return bench_cache::run_hits(argc, argv, g_stop);
}
int run_density(int argc, char** argv) {
  return bench_cache::run_density(argc, argv, g_stop);
}
int run_growth(int argc, char** argv) {
  return bench_cache::run_growth(argc, argv, g_stop);
}
int run_rpc(int argc, char** argv) {
  return bench_rpc::run(argc, argv, g_stop);
}
int run_fleet(int argc, char** argv) {
  return bench_fleet::run(argc, argv, g_stop);
}
int run_scale(int argc, char** argv) {
  return bench_scale::run(argc, argv, g_stop);
}
int run_placement(int argc, char** argv) {
  return bench_placement::run(argc, argv, g_stop);
}
int run_client(int argc, char** argv) {
  return bench_library::run(argc, argv, g_stop);
}
int run_paradigms(int argc, char** argv) {
  return bench_paradigms::run(argc, argv, g_stop);
}
constexpr std::array<Command, 13> kCommands{{{"run", run},
                                             {"client", run_client},
                                             {"rpc", run_rpc},
                                             {"fleet", run_fleet},
                                             {"scale", run_scale},
                                             {"compare", run_compare},
                                             {"plot", bench_plot::run},
                                             {"verbs", run_verbs},
                                             {"hits", run_hits},
                                             {"density", run_density},
                                             {"growth", run_growth},
                                             {"placement", run_placement},
                                             {"paradigms", run_paradigms}}};

}  // namespace
}  // namespace egret::bench

int main(int argc, char** argv) {
  using egret::bench::kCommands;
  struct sigaction action {};
  action.sa_handler = egret::bench::stop_on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  for (const auto& command : kCommands) {
    if (argc > 1 && command.name == argv[1]) return command.run(argc - 1, argv + 1);
  }
  return kCommands[0].run(argc, argv);
}
