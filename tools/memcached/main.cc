// egret-memcached: runs Egret under memcached's command line.
//
//   argv ─ command_line ─▶ Request ─ plan ─▶ options of both daemons ─ launcher ─▶ egret-backend + egret-proxy
//
// In between, in memcached's order: core files, the user, the background.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <variant>

#include <unistd.h>

#include "base/service/notify.h"
#include "base/text.h"
#include "memcached/background.h"
#include "memcached/command_line.h"
#include "memcached/files.h"
#include "memcached/flags.h"
#include "memcached/identity.h"
#include "memcached/launcher.h"
#include "memcached/plan.h"

namespace egret::memcached {
namespace {

// The version of memcached whose behaviour this is; `version` answers the same (proxy/report/stats_report.h; a test
// compares them).
constexpr const char* kMemcachedVersion = "1.6.45";

int refuse(const Refusal& refusal) {
  std::fprintf(stderr, "%s\n", refusal.message.c_str());
  return refusal.status;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int print_about(Action action) {
  switch (action) {
    case Action::kHelp:
      std::fputs(("memcached " + std::string(kMemcachedVersion) + "\n" + help_text()).c_str(), stdout);
      return 0;
    case Action::kHelpMarkdown:
      std::fputs(help_markdown().c_str(), stdout);
      return 0;
    case Action::kVersion:
      std::printf("memcached %s\negret-memcached " EGRET_VERSION " (Egret)\n", kMemcachedVersion);
      return 0;
    default:
      std::puts("egret-memcached " EGRET_VERSION
                " is part of Egret. It speaks memcached's protocols and takes its flags, and holds none of its code.");
      return 0;
  }
}

void say_notes(const Plan& plan) {
  std::string line;
  for (const std::string& note : plan.notes) line.append(line.empty() ? "" : "; ").append(note);
  if (!line.empty()) std::fprintf(stderr, "egret-memcached: %s\n", base::one_line(line).c_str());
}

int launch(const Request& request, const Plan& plan, Program backend, Program proxy) {
  const std::string port_file = plan.has_tcp ? variable("MEMCACHED_PORT_FILENAME") : "";
  std::optional<Background> background;
  if (request.daemon) {
    background = Background::enter({.keep_directory = request.core_dumps, .keep_output = request.verbosity > 0});
    if (!background) return refuse({"failed to daemon() in order to daemonize"});
    if (background->is_parent()) return background->wait_for_child();
  }
  block_signals();
  DaemonOptions proxy_options = plan.proxy;
  proxy_options["main_pid"] = std::to_string(::getpid());
  PidFile pid_file;
  const auto on_ready = [&](const std::vector<std::string>& listening) {
    if (!port_file.empty()) write_port_file(port_file, listening);
    if (!request.pid_file.empty()) pid_file.write(request.pid_file);
    base::notify_supervisor(std::string(base::kNotifyReady) + "\nMAINPID=" + std::to_string(::getpid()));
    if (background) background->report_ready();
  };
  Launcher launcher({.backend_arguments = set_arguments(plan.backend),
                     .proxy_arguments = set_arguments(proxy_options),
                     .silent = request.daemon && request.verbosity == 0,
                     .where = plan.where},
                    std::move(backend), std::move(proxy), on_ready);
  const int status = launcher.run();
  if (background) background->report_failure(status);
  return status;
}

int run(int argc, char** argv) {
  auto read = read_command_line(argc, argv);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return refuse(*refusal);
  const Request& request = std::get<Request>(read);
  if (request.action != Action::kServe) return print_about(request.action);
  auto made = make_plan(request, variable("MEMCACHED_SASL_PWDB"));
  if (const auto* refusal = std::get_if<Refusal>(&made)) return refuse(*refusal);
  const Plan& plan = std::get<Plan>(made);
  // Find and open the programs before the user changes.
  auto backend = Program::find("egret-backend");
  auto proxy = Program::find("egret-proxy");
  if (!backend || !proxy) return refuse({!backend ? backend.message() : proxy.message()});
  if (request.core_dumps) {
    if (auto refusal = allow_core_dumps(); refusal) return refuse(*refusal);
  }
  if (auto refusal = leave_root(request.user); refusal) return refuse(*refusal);
  say_notes(plan);
  return launch(request, plan, std::move(backend.value()), std::move(proxy.value()));
}

}  // namespace
}  // namespace egret::memcached

int main(int argc, char** argv) {
  try {
    return egret::memcached::run(argc, argv);
  } catch (const std::exception& problem) {  // no memory, no working directory
    std::fprintf(stderr, "egret-memcached: %s\n", problem.what());
    return egret::memcached::kFailure;
  }
}
