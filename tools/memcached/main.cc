// egret-memcached: runs Egret under memcached's command line.
//
//   argv ─ command_line ─▶ Request ─ plan ─▶ options of both daemons ┬─ oneprocess ─▶ this process
//                                                                   └─ launcher ─▶ egret-backend + egret-proxy
//
// In between, in memcached's order: core files, the user, the background.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <variant>

#include <unistd.h>

#include "base/service/doctor.h"
#include "base/service/notify.h"
#include "base/service/program.h"
#include "base/text.h"
#include "memcached/background.h"
#include "memcached/command_line.h"
#include "memcached/files.h"
#include "memcached/flags.h"
#include "memcached/identity.h"
#include "memcached/launcher.h"
#include "memcached/plan.h"
#include "oneprocess/serve.h"

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

// What is done once clients are served; and the parent of -d, which waits for that.
class Readiness {
 public:
  Readiness(const Request& request, const Plan& plan)
      : request_(request), port_file_(plan.has_tcp ? variable("MEMCACHED_PORT_FILENAME") : "") {}

  // None: go on. Else the exit status: this is the parent, or there is no other process to be had.
  std::optional<int> go_to_background() {
    if (!request_.daemon) return {};
    background_ = Background::enter({.keep_directory = request_.core_dumps, .keep_output = request_.verbosity > 0});
    if (!background_) return refuse({"failed to daemon() in order to daemonize"});
    if (background_->is_parent()) return background_->wait_for_child();
    return {};
  }
  // The supervisor is told, too, which process it has to do with.
  void on_ready(const std::vector<std::string>& listening) {
    if (!port_file_.empty()) write_port_file(port_file_, listening);
    if (!request_.pid_file.empty()) pid_file_.write(request_.pid_file);
    base::notify_supervisor(std::string(base::kNotifyReady) + "\nMAINPID=" + std::to_string(::getpid()));
    if (background_) background_->report_ready();
  }
  int ended(int status) {
    if (background_) background_->report_failure(status);
    return status;
  }

 private:
  const Request& request_;
  const std::string port_file_;
  std::optional<Background> background_;
  PidFile pid_file_;
};

int launch(const Request& request, const Plan& plan, Program backend, Program proxy) {
  Readiness readiness(request, plan);
  if (const auto status = readiness.go_to_background()) return *status;
  block_signals();
  DaemonOptions proxy_options = plan.proxy;
  proxy_options["main_pid"] = std::to_string(::getpid());
  Launcher launcher({.backend_arguments = set_arguments(plan.backend),
                     .proxy_arguments = set_arguments(proxy_options),
                     .listen = request.listen,
                     .silent = request.daemon && request.verbosity == 0,
                     .where = plan.where},
                    std::move(backend), std::move(proxy),
                    [&](const std::vector<std::string>& listening) { readiness.on_ready(listening); });
  return readiness.ended(launcher.run());
}

oneprocess::Settings settings_of(const Request& request, const Plan& plan) {
  return {.name = "egret-memcached",
          .backend_arguments = assignments(plan.backend),
          .proxy_arguments = assignments(plan.proxy),
          .listen = request.listen,
          .on_ready = {}};
}

int examine(const Request& request, const Plan& plan) {
  const auto findings = oneprocess::examine(settings_of(request, plan));
  if (findings) return base::print_findings(findings.value());
  base::fail_start("egret-memcached", findings.message());
  return kFailure;
}

int serve_in_this_process(const Request& request, const Plan& plan) {
  Readiness readiness(request, plan);
  if (const auto status = readiness.go_to_background()) return *status;
  oneprocess::Settings settings = settings_of(request, plan);
  settings.on_ready = [&](const std::string& notice) { readiness.on_ready(addresses_of(notice)); };
  const oneprocess::Outcome outcome = oneprocess::serve(settings);
  if (outcome.status) return readiness.ended(0);
  base::fail_start("egret-memcached", outcome.status.message());
  if (!outcome.cannot_listen) return readiness.ended(kFailure);
  std::fprintf(stderr, "failed to listen on %s\n", plan.where.c_str());
  return readiness.ended(kSystem);
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
  std::optional<Program> backend, proxy;
  if (request.two_processes) {
    auto found_backend = Program::find("egret-backend");
    auto found_proxy = Program::find("egret-proxy");
    if (!found_backend) return refuse({found_backend.message()});
    if (!found_proxy) return refuse({found_proxy.message()});
    backend = std::move(found_backend.value());
    proxy = std::move(found_proxy.value());
  }
  if (request.core_dumps) {
    if (auto refusal = allow_core_dumps(); refusal) return refuse(*refusal);
  }
  if (auto refusal = leave_root(request.user); refusal) return refuse(*refusal);
  say_notes(plan);
  if (request.doctor) return examine(request, plan);
  if (!request.two_processes) return serve_in_this_process(request, plan);
  return launch(request, plan, std::move(*backend), std::move(*proxy));
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
