// egret-proxy: serves memcached clients of this host from Egret backends.
//
//   main: options → workers (each with its sessions) → frontend loop (this thread) → drain → stop
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include "base/log/log.h"
#include "base/options/reload.h"
#include "base/service/inherited.h"
#include "base/service/notify.h"
#include "base/service/program.h"
#include "proxy/config.h"
#include "proxy/doctor.h"
#include "proxy/explain.h"
#include "proxy/log_events.h"
#include "proxy/option_table.h"
#include "proxy/process/process.h"
#include "proxy/report/metrics.h"
#include "proxy/report/stats_report.h"

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

// Throws std::system_error if the system has no descriptors for what a start takes.
int serve(Config config, Inherited inherited, base::Reloader& reloader) {
  Process proxy(std::move(config), reloader);
  if (base::Status loaded = proxy.load_tls(inherited.sockets); !loaded) {
    return base::fail_start("egret-proxy", loaded.message());
  }
  if (base::Status listening = proxy.listen(std::move(inherited.sockets)); !listening) {
    return base::fail_start("egret-proxy", listening.message(), base::kNotifyCannotListen);
  }
  base::Status served = proxy.start();
  if (served) served = proxy.run(std::move(inherited.clients));
  proxy.stop();
  proxy.join();
  if (!served) return base::fail_start("egret-proxy", served.message());
  proxy.hand_over();
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
  auto sorted = proxy::sort_inherited(std::move(inherited.value()));
  if (!sorted) return base::fail_start("egret-proxy", sorted.message(), base::kNotifyCannotListen);
  proxy::Config config = proxy::resolve_config(*start.options).value();
  // Passed sockets replace the default address.
  if (!sorted.value().sockets.empty() && !start.options->is_given("listen")) config.listen.clear();
  base::setup_logging("egret-proxy", base::log_level_of(config.log_level), base::log_format_of(config.log_format));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the reloader exists
  base::Reloader reloader(start.sources, *start.options, proxy::check);
  try {
    return proxy::serve(std::move(config), std::move(sorted.value()), reloader);
  } catch (const std::system_error& problem) {
    return base::fail_start("egret-proxy", std::string("cannot start: ") + problem.what());
  }
}
