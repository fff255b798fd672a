// egret-proxy: serves memcached clients of this host from Egret backends.
//
//   main: options → workers (each with its sessions) → frontend loop (this thread) → drain → stop
#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/inherited.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/program.h"
#include "base/watchdog.h"
#include "proxy/config.h"
#include "proxy/doctor.h"
#include "proxy/frontend.h"
#include "proxy/listen_socket.h"
#include "proxy/stats_report.h"
#include "proxy/worker.h"

namespace egret::proxy {
namespace {

constexpr uint64_t kDrainNs = 700'000'000;   // for what is in flight at the end; the whole stop stays under a second
constexpr uint64_t kOtherDescriptors = 256;  // besides clients and sessions
constexpr uint64_t kDescriptorsPerSession = 16;  // its channels, at most

base::Status check(const base::Options& options) {
  return resolve_config(options).status();
}

base::Findings doctor(const base::Options& options) {
  return examine(resolve_config(options).value());
}

// As many descriptors as max_connections needs, if we may; else as many connections as there are descriptors.
void fit_connections(Config& config) {
  const uint64_t others = kOtherDescriptors + kDescriptorsPerSession * config.workers * config.backends.size();
  const uint64_t needed = config.max_connections + others;
  const uint64_t limit = base::raise_descriptor_limit(needed);
  if (limit >= needed) return;
  const uint64_t possible = limit > others ? limit - others : 1;
  base::log_warning("max_connections lowered from {} to {}: the limit of open files is {} (systemd: LimitNOFILE)",
                    config.max_connections, possible, limit);
  config.max_connections = static_cast<uint32_t>(possible);
}

// Legal, and now and then wanted for a while (to drain it); but it should not come as a surprise.
void warn_of_empty_shares(const Config& config) {
  const KetamaRing ring = ring_of(config.backends);
  for (size_t number = 0; number < config.backends.size(); ++number) {
    if (ring.points_of(number) > 0) continue;
    base::log_warning("backend {} gets no keys: its weight of {} is too small beside the others'",
                      config.backends[number].name, config.backends[number].weight);
  }
}

int serve(Config config, ListenSockets inherited) {
  warn_of_empty_shares(config);
  fit_connections(config);
  base::log_problems(check_start(config));
  const base::SystemClock clock;
  StatsSource stats;
  stats.config = &config;
  stats.clock = &clock;
  stats.start_ns = clock.now_ns();
  for (uint32_t number = 0; number < config.workers; ++number) stats.workers.push_back(std::make_unique<WorkerStats>());
  std::optional<TlsServer> tls;
  const bool inherits_tls =
      std::ranges::any_of(inherited, [](const ListenSocket& socket) { return socket.address.is_tls(); });
  if (config.has_tls() || inherits_tls) {
    TlsContext loaded = load_tls(config.tls);
    if (!loaded.is_ok()) {  // since it was checked
      std::fprintf(stderr, "egret-proxy: %.*s: %s\n", static_cast<int>(loaded.option.size()), loaded.option.data(),
                   loaded.fault.c_str());
      return 1;
    }
    stats.tls = &tls.emplace(config.tls, std::move(loaded), clock);
  }
  std::vector<std::unique_ptr<Worker>> workers;
  base::Watchdog watchdog(config.workers);
  Frontend frontend(config, stats, workers, watchdog);
  if (base::Status listening = frontend.listen(std::move(inherited)); !listening) {
    return base::fail_start("egret-proxy", listening.message(), base::kNotifyCannotListen);
  }
  stats.listeners = frontend.listener_records();
  for (uint32_t number = 0; number < config.workers; ++number) {
    workers.push_back(std::make_unique<Worker>(config, number, clock, stats, watchdog));
  }
  for (const auto& worker : workers) worker->start();
  frontend.run();
  for (const auto& worker : workers) worker->stop(kDrainNs);
  for (const auto& worker : workers) worker->join();
  base::log_info("stopped");
  return 0;
}

}  // namespace
}  // namespace egret::proxy

int main(int argc, char** argv) {
  using namespace egret;
  auto inherited = base::take_inherited();
  const base::ProgramStart start =
      base::start_program({.name = "egret-proxy",
                           .summary = "Serves memcached clients of this host from Egret backends.",
                           .table = proxy::option_table(),
                           .check = proxy::check,
                           .doctor = proxy::doctor,
                           .metrics_markdown = proxy::lane_metrics_markdown},
                          argc, argv);
  if (!start.options) return start.exit_status;
  if (!inherited) return base::fail_start("egret-proxy", inherited.message(), base::kNotifyCannotListen);
  auto sockets = proxy::check_inherited(std::move(inherited.value()));
  if (!sockets) return base::fail_start("egret-proxy", sockets.message(), base::kNotifyCannotListen);
  proxy::Config config = proxy::resolve_config(*start.options).value();
  // Whoever passes sockets has said where to listen; the table's own address is for when nobody has.
  if (!sockets.value().empty() && !start.options->is_given("listen")) config.listen.clear();
  base::setup_logging("egret-proxy", base::log_level_of(config.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until there is something to reload
  return proxy::serve(std::move(config), std::move(sockets.value()));
}
