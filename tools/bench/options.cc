#include "bench/options.h"

#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/load.h"

namespace egret::bench {
namespace {

void add_load_options(CLI::App& app, LoadSpec& load) {
  const auto group = "Load";
  app.add_option("-c,--connections", load.connections, "connections")->capture_default_str()->group(group);
  app.add_option("-d,--depth", load.depth, "requests of a connection that are unanswered at the same time")
      ->capture_default_str()
      ->group(group);
  app.add_option("--sending", load.sending,
                 "rounds: a connection sends all its next requests when the last are answered, and the generator is "
                 "faster than the server; at-once: a new request for each answer, and the generator works as a client")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Sending>{{"rounds", Sending::kRounds}, {"at-once", Sending::kAtOnce}}))
      ->option_text("rounds|at-once [rounds]")
      ->group(group);
  app.add_option("--idle", load.idle_connections, "connections that are open besides and send nothing")
      ->capture_default_str()
      ->group(group);
  app.add_flag_callback(
         "--binary", [&load] { load.protocol = Protocol::kBinary; }, "speak the binary protocol instead of text")
      ->group(group);
  app.add_option("-m,--multiget", load.multiget, "keys per get")->capture_default_str()->group(group);
  app.add_option("-v,--value-size", load.value_size, "bytes per value")->capture_default_str()->group(group);
  app.add_option("-k,--keys", load.keys, "number of different keys")->capture_default_str()->group(group);
  app.add_option("--key-size", load.key_size, "bytes per key")->capture_default_str()->group(group);
  app.add_option("--zipf", load.zipf, "exponent of the keys' popularity, such as 0.99; 0: all alike")
      ->capture_default_str()
      ->group(group);
  app.add_option("-r,--read-share", load.read_share, "share of the requests that are gets")
      ->capture_default_str()
      ->group(group);
  app.add_option("--rate", load.rate, "requests/s over all connections, on schedule; 0: as fast as answers come")
      ->capture_default_str()
      ->group(group);
  app.add_option("-t,--duration", load.duration_s, "seconds that are measured")->capture_default_str()->group(group);
  app.add_option("--warmup", load.warmup_s, "seconds before them")->capture_default_str()->group(group);
  app.add_flag("--preload,!--no-preload", load.preload, "set every key once before")->group(group);
  app.add_option("--threads", load.threads, "threads of the generator")->capture_default_str()->group(group);
  app.add_option("--seed", load.seed, "of all random choices")->capture_default_str()->group(group);
}

void add_server_options(CLI::App& app, Options& options) {
  const auto group = "Servers";
  auto* connect =
      app.add_option("--connect", options.connect, "measure what serves at HOST:PORT or unix:PATH")->group(group);
  app.add_option("--pid", options.pids, "measure the CPU of this process too (with --connect; may be repeated)")
      ->needs(connect)
      ->group(group);
  auto* spawn = app.add_option("--spawn", options.spawn, "start this memcached command and measure it")
                    ->excludes(connect)
                    ->group(group);
  auto* egret = app.add_option("--spawn-egret", options.egret.binaries,
                               "start DIR/egret-backend and DIR/egret-proxy and measure both")
                    ->excludes(connect)
                    ->excludes(spawn)
                    ->group(group);
  app.add_option("--conf", options.egret.conf,
                 "folder of egret-backend.yaml and egret-proxy.yaml (default: conf, "
                 "DIR/../../conf or /etc/egret)")
      ->needs(egret)
      ->group(group);
  app.add_option("--backend-set", options.egret.backend_set, "KEY=VALUE passed to egret-backend --set")
      ->needs(egret)
      ->group(group);
  app.add_option("--proxy-set", options.egret.proxy_set, "KEY=VALUE passed to egret-proxy --set")
      ->needs(egret)
      ->group(group);
  app.add_option("--peer", options.peer, "start this memcached command too, and measure it in turn with the other")
      ->group(group);
  app.add_option("--peer-memory", options.peer_memory_mib, "the peer's memory in MiB; 0: what the subject's stats say")
      ->capture_default_str()
      ->group(group);
}

bool is_consistent(const Options& options, std::string& complaint) {
  if (options.connect.empty() && options.spawn.empty() && options.egret.binaries.empty() && options.peer.empty()) {
    complaint = "nothing to measure: give --connect, --spawn, --spawn-egret or --peer";
    return false;
  }
  const base::Status status = check_spec(options.load);
  complaint = status.message();
  return status.is_ok();
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app(
      "Drives a memcached-protocol server, checks every answer, and says what each op cost.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer.",
      "egret-bench");
  app.footer(
      "Commands with a --help of their own: egret-bench client, compare, plot, rpc, scale, verbs, hits, density, "
      "growth, "
      "placement, "
      "paradigms.");
  add_server_options(app, options);
  add_load_options(app, options.load);
  app.add_option("--rounds", options.rounds.rounds, "rounds; with a peer: of both in turn")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--quiet", options.rounds.quiet_cpus,
                 "run a round again in which others kept more CPUs busy than this, such as 0.3; 0: never")
      ->capture_default_str();
  app.add_flag("--suite", options.suite, "the fixed set of cases, instead of one given by the load options");
  app.add_option("--case", options.cases, "of the suite only the cases whose name contains this (may be repeated)");
  app.add_flag("--json", options.json, "print JSON instead of Markdown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  std::string complaint;
  if (is_consistent(options, complaint)) return true;
  std::fprintf(stderr, "egret-bench: %s\n", complaint.c_str());
  exit_status = 1;
  return false;
}

}  // namespace egret::bench
