// The run of `egret-bench paradigms`: the sides, and what becomes of the report.
#include "bench_paradigms/command.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "bench/server/neighbours.h"
#include "bench_paradigms/fabric/pages.h"
#include "bench_paradigms/harness/memory_run.h"
#include "bench_paradigms/harness/rounds.h"
#include "bench_paradigms/harness/session_run.h"
#include "bench_paradigms/options.h"
#include "bench_paradigms/report/pictures.h"
#include "bench_paradigms/report/report.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

constexpr const char* kMeasuredNic = "egret-nic.json";

// What the report is to be modelled on, read before anything is run: a mistake is not told after minutes.
Status read_card(const Options& options, std::optional<bench_nic::Nic>& nic) {
  if (options.nic.empty()) return Status::ok();
  const bool is_measured = options.nic == "measured";
  auto read = bench_nic::read_nic(is_measured ? kMeasuredNic : options.nic);
  if (read) nic = std::move(read.value());
  if (read || !is_measured) return read.status();
  return Status::error(read.message() + "; egret-bench verbs --nic-file " + kMeasuredNic + " makes it");
}

// Why the exit status is 1; empty: it is 0.
std::string complaint_of(const Report& report) {
  if (report.is_interrupted) return "interrupted: the figures are incomplete";
  const uint64_t wrong = broken_promises(report);
  if (wrong > 0) return std::to_string(wrong) + " wrong answers of paradigms that promise none";
  uint64_t failed = 0;
  for (const CaseReport& each : report.cases) {
    for (const Row& row : each.rows) failed += row.failed + row.unanswered;
  }
  return failed == 0 ? "" : std::to_string(failed) + " ops failed or were never answered";
}

// What all sides are told at the end: the complaint in the first line, then the report. Pictures are drawn here.
std::string finish(const Options& options, Report& report, const std::optional<bench_nic::Nic>& nic) {
  report.nic = nic;
  std::string complaint = complaint_of(report);
  if (!options.svg_folder.empty()) {
    Status drawn = write_pictures(report, options.svg_folder);
    if (!drawn) complaint = drawn.message();
  }
  return complaint + "\n" + (options.json ? to_json(report) : to_markdown(report));
}

Expected<Report> run_memory(const Options& options, const std::atomic<bool>& stop) {
  MemoryRunner runner(options.setting);
  auto report = run_rounds(options.setting, runner, say, stop);
  if (!report) return report;
  report.value().is_in_memory = true;
  report.value().hosts = {"this process, without a device"};
  return report;
}

// The listening side's.
Expected<Report> run_session(const Options& options, Session& session, HarnessWork& work,
                             const std::atomic<bool>& stop) {
  SessionRunner runner(options.setting, session, work);
  auto report = run_rounds(options.setting, runner, say, stop);
  if (!report) return report;
  for (const HostInfo& each : session.hosts()) {
    const char* const part = report.value().hosts.empty() ? "this host, which stores" : "clients' host";
    report.value().hosts.push_back(fmt::format("{}: {}, {} processors", part, each.device, each.processors));
  }
  return report;
}

Expected<std::string> run_options(const Options& options, const std::atomic<bool>& stop) {
  std::optional<bench_nic::Nic> nic;
  if (Status done = read_card(options, nic); !done) return done;
  const auto finished = [&](Expected<Report> report) -> Expected<std::string> {
    if (!report) return report.status();
    return finish(options, report.value(), nic);
  };
  if (options.is_in_memory) return finished(run_memory(options, stop));
  std::optional<bench::Neighbours> busy;  // processes: started before there are threads
  if (options.setting.busy > 0 && options.connect.empty()) {
    auto started = bench::Neighbours::start(options.setting.busy);
    if (!started) return started.status();
    busy.emplace(std::move(started.value()));
  }
  HarnessWork work;
  const Sides sides{options.listen, options.connect, options.loop, options.token, options.hosts};
  return run_sides(
      sides, work, [&](Session& session) { return finished(run_session(options, session, work, stop)); }, say, stop);
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Options options;
  int exit_status = 0;
  if (!parse_options(argc, argv, options, exit_status)) return exit_status;
  const auto told = run_options(options, stop);
  if (const std::string line = to_line(huge_pages()); !line.empty()) say("egret-bench paradigms: " + line);
  std::string complaint;
  if (told) {
    const size_t end = std::min(told.value().find('\n'), told.value().size());
    complaint = told.value().substr(0, end);
    if (end < told.value().size()) std::fputs(told.value().c_str() + end + 1, stdout);
  } else {
    complaint = told.message();
  }
  if (complaint.empty()) return 0;
  std::fprintf(stderr, "egret-bench paradigms: %s\n", complaint.c_str());
  return 1;
}

}  // namespace egret::bench_paradigms
