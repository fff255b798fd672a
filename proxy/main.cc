// egret-proxy: serves memcached clients of this host from Egret backends.
//
//   main: options → workers (each with its sessions) → frontend loop (this thread) → drain → stop
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/options/reload.h"
#include "base/service/inherited.h"
#include "base/service/notify.h"
#include "base/service/program.h"
#include "base/service/watchdog.h"
#include "proxy/client/handover.h"
#include "proxy/client/listen_socket.h"
#include "proxy/config.h"
#include "proxy/doctor.h"
#include "proxy/explain.h"
#include "proxy/frontend.h"
#include "proxy/log_events.h"
#include "proxy/report/metrics.h"
#include "proxy/report/stats_report.h"
#include "proxy/worker.h"

namespace egret::proxy {
namespace {

base::Status check(const base::Options& options) {
  return resolve_config(options).status();
}

base::Findings doctor(const base::Options& options) {
  return examine(resolve_config(options).value());
}

constexpr base::ProgramInfo::Question kQuestions[] = {
    {"--where", "KEY", "say which backend of the pool a key belongs to, and why, and exit", explain_key}};

// False: the files have become invalid since they were checked.
bool set_up_tls(TlsServer& tls, const Config& config) {
  TlsContext loaded = load_tls(config.tls);
  if (!loaded.is_ok()) {
    std::fprintf(stderr, "egret-proxy: %.*s: %s\n", static_cast<int>(loaded.option.size()), loaded.option.data(),
                 loaded.fault.c_str());
    return false;
  }
  tls.install(config.tls, std::move(loaded));
  return true;
}

// An error: there was no thread for one of them. Those before it run.
base::Status start(const std::vector<std::unique_ptr<Worker>>& workers) {
  try {
    for (const auto& worker : workers) worker->start();
  } catch (const std::system_error& problem) {
    return base::Status::error(std::string("cannot start a worker: ") + problem.what());
  }
  return base::Status::ok();
}

// Throws std::system_error if the system has no descriptors for what a start takes.
int serve(Config config, ListenSockets inherited, std::vector<base::InheritedFd> clients, base::Reloader& reloader) {
  fit_connections(config);
  base::log_problems(check_start(config));
  const base::SystemClock clock;
  ProxyState stats;
  stats.clock = &clock;
  stats.start_ns = clock.now_ns();
  for (uint32_t number = 0; number < config.workers; ++number) stats.workers.push_back(std::make_unique<WorkerStats>());
  TlsServer tls(clock);
  stats.tls = &tls;
  const bool inherits_tls =
      std::ranges::any_of(inherited, [](const ListenSocket& socket) { return socket.address.is_tls(); });
  if ((config.has_tls() || inherits_tls) && !set_up_tls(tls, config)) return 1;
  const uint32_t worker_count = config.workers;
  stats.config.set(std::move(config));
  std::vector<std::unique_ptr<Worker>> workers;
  base::Watchdog watchdog(worker_count);
  Frontend frontend(stats, workers, watchdog, reloader);
  if (base::Status listening = frontend.listen(std::move(inherited)); !listening) {
    return base::fail_start("egret-proxy", listening.message(), base::kNotifyCannotListen);
  }
  for (uint32_t number = 0; number < worker_count; ++number) {
    workers.push_back(std::make_unique<Worker>(number, clock, stats, watchdog));
  }
  base::Status served = start(workers);
  if (served) {
    frontend.adopt(take_clients(std::move(clients)));
    served = frontend.run();
  }
  for (const auto& worker : workers) worker->stop(stats.config.get()->drain_ns);
  for (const auto& worker : workers) worker->join();
  if (!served) return base::fail_start("egret-proxy", served.message());
  if (const size_t gone = stats.handover.send(); gone > 0) {
    base::log(kClientsHandedOver, "{} clients are handed over", base::field("clients", gone));
  }
  base::log(kStopped, "stopped");
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
                           .questions = proxy::kQuestions,
                           .explain = proxy::explain_pool,
                           .metrics_markdown = proxy::metrics_markdown,
                           .stats_markdown = proxy::lane_metrics_markdown,
                           .events = proxy::log_events()},
                          argc, argv);
  if (!start.options) return start.exit_status;
  if (!inherited) return base::fail_start("egret-proxy", inherited.message(), base::kNotifyCannotListen);
  std::vector<base::InheritedFd> clients = proxy::part_clients(inherited.value());
  auto sockets = proxy::check_inherited(std::move(inherited.value()));
  if (!sockets) return base::fail_start("egret-proxy", sockets.message(), base::kNotifyCannotListen);
  proxy::Config config = proxy::resolve_config(*start.options).value();
  // Passed sockets replace the default address.
  if (!sockets.value().empty() && !start.options->is_given("listen")) config.listen.clear();
  base::setup_logging("egret-proxy", base::log_level_of(config.log_level), base::log_format_of(config.log_format));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the reloader exists
  base::Reloader reloader(start.sources, *start.options, proxy::check);
  try {
    return proxy::serve(std::move(config), std::move(sockets.value()), std::move(clients), reloader);
  } catch (const std::system_error& problem) {
    return base::fail_start("egret-proxy", std::string("cannot start: ") + problem.what());
  }
}
