// egret-backend: a partitioned key-value store served through slots.
//
//   main: options → store per partition → partition threads → control loop (this thread) → stop
#include <csignal>
#include <string>
#include <system_error>

#include "backend/config.h"
#include "backend/doctor.h"
#include "backend/log_events.h"
#include "backend/option_table.h"
#include "backend/process/process.h"
#include "backend/report/metrics.h"
#include "base/log/log.h"
#include "base/options/reload.h"
#include "base/service/notify.h"
#include "base/service/program.h"

namespace egret::backend {
namespace {

base::Status check(const base::Options& options) {
  return resolve_config(options).status();
}

std::string explain(const base::Options& options) {
  return explain_limits(resolve_config(options).value());
}

base::Findings doctor(const base::Options& options) {
  return examine(resolve_config(options).value());
}

// Throws std::system_error if the system has no descriptors for what a start takes.
int serve(const Config& config, base::Reloader& reloader) {
  base::Status served = base::Status::ok();
  {
    Process backend(config, reloader, Control::Process::kBackend);
    if (base::Status opened = backend.open(); !opened) return base::fail_start("egret-backend", opened.message());
    if (base::Status started = backend.start(); !started) return base::fail_start("egret-backend", started.message());
    base::notify_supervisor(std::string(base::kNotifyReady));
    served = backend.run();
  }
  if (!served) return base::fail_start("egret-backend", served.message());
  base::log(kStopped, "stopped");
  return 0;
}

}  // namespace
}  // namespace egret::backend

int main(int argc, char** argv) {
  using namespace egret;
  const base::ProgramStart start =
      base::start_program({.name = "egret-backend",
                           .summary = "The store of Egret: executes ops that arrive in slots.",
                           .table = backend::option_table(),
                           .check = backend::check,
                           .doctor = backend::doctor,
                           .explain = backend::explain,
                           .metrics_markdown = backend::metrics_markdown,
                           .events = backend::log_events()},
                          argc, argv);
  if (!start.options) return start.exit_status;
  const backend::Config config = backend::resolve_config(*start.options).value();
  base::setup_logging("egret-backend", base::log_level_of(config.log_level), base::log_format_of(config.log_format));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the reloader exists
  base::Reloader reloader(start.sources, *start.options, backend::check);
  try {
    return backend::serve(config, reloader);
  } catch (const std::system_error& problem) {
    return base::fail_start("egret-backend", std::string("cannot start: ") + problem.what());
  }
}
