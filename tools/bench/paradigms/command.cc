// The run of `egret-bench paradigms`: the sides, and what becomes of the report.
#include "bench_paradigms/command.h"

#include <cstdio>
#include <optional>

#include "bench_paradigms/harness/memory_run.h"
#include "bench_paradigms/harness/rounds.h"
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

Expected<Report> run_memory(const Options& options, const std::atomic<bool>& stop) {
  if (!options.is_in_memory) return Status::error("hosts are not brought together yet: --memory");
  MemoryRunner runner(options.setting);
  auto report = run_rounds(options.setting, runner, say, stop);
  if (!report) return report;
  report.value().is_in_memory = true;
  report.value().hosts = {"this process, without a device"};
  return report;
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

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Options options;
  int exit_status = 0;
  if (!parse_options(argc, argv, options, exit_status)) return exit_status;
  std::optional<bench_nic::Nic> nic;
  std::string complaint;
  Status has_card = read_card(options, nic);
  auto report = has_card ? run_memory(options, stop) : Expected<Report>(has_card);
  if (report) {
    report.value().nic = nic;
    std::fputs((options.json ? to_json(report.value()) : to_markdown(report.value())).c_str(), stdout);
    complaint = complaint_of(report.value());
    if (!options.svg_folder.empty()) {
      Status drawn = write_pictures(report.value(), options.svg_folder);
      if (!drawn) complaint = drawn.message();
    }
  } else {
    complaint = report.message();
  }
  if (complaint.empty()) return 0;
  std::fprintf(stderr, "egret-bench paradigms: %s\n", complaint.c_str());
  return 1;
}

}  // namespace egret::bench_paradigms
