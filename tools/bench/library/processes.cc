// Each child connects and sends an empty report. When all have, the parent closes `go`; the children do gets until the time
// is over, and report them.
#include "bench_library/processes.h"

#include <array>
#include <ctime>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "bench/monotonic.h"
#include "bench/server/process_meter.h"

namespace egret::bench_library {

namespace {

using base::Status;

constexpr size_t kBatches = 1000;  // of a process

struct Pipe {
  base::UniqueFd from, to;
};

base::Expected<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Status::system_error("pipe", errno);
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// What a child writes in one piece.
struct Report {
  uint64_t gets = 0;
  uint64_t cpu_ns = 0;
  std::array<char, 200> error{};  // empty: all is well
};

uint64_t own_cpu_ns() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<uint64_t>(spent.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(spent.tv_nsec);
}

Status run_child(const Side& of, size_t number, const MeasureOptions& options, int go, int reports, Report& report) {
  auto made = of.another();
  if (!made) return made.status();
  Side& side = *made.value();
  const std::vector<Batch> batches =
      make_batches(kBatches, 1, options.keys, options.value_bytes, number * options.keys / kProcesses);
  const auto get = [&](size_t turn) {
    const Batch& batch = batches[turn % batches.size()];
    return side.get(batch.keys[0], batch.values[0]);
  };
  if (Status first = get(0); !first) return first;
  if (::write(reports, &report, sizeof report) != static_cast<ssize_t>(sizeof report))
    return Status::error("nobody reads");
  char nothing = 0;
  if (::read(go, &nothing, 1) != 0) return Status::error("not started");
  const uint64_t before_ns = own_cpu_ns();
  const uint64_t end_ns = bench::monotonic_ns() + bench::seconds_to_ns(options.seconds);
  while (bench::monotonic_ns() < end_ns) {
    if (Status got = get(report.gets); !got) return got;
    ++report.gets;
  }
  report.cpu_ns = own_cpu_ns() - before_ns;
  return Status::ok();
}

[[noreturn]] void be_child(const Side& side, size_t number, const MeasureOptions& options, int go, int reports) {
  Report report;
  if (const Status done = run_child(side, number, options, go, reports, report); !done) {
    const std::string why = done.message().empty() ? "failed" : done.message();
    why.copy(report.error.data(), report.error.size() - 1);
  }
  ::_exit(::write(reports, &report, sizeof report) == static_cast<ssize_t>(sizeof report) ? 0 : 1);
}

// One report of each child.
Status read_reports(int from, Row* row) {
  for (size_t i = 0; i < kProcesses; ++i) {
    Report report;
    if (::read(from, &report, sizeof report) != static_cast<ssize_t>(sizeof report))
      return Status::error("one of the processes has ended");
    if (report.error[0] != 0) return Status::error(report.error.data());
    if (row == nullptr) continue;
    row->gets += report.gets;
    row->own_cpu_ns += report.cpu_ns;
  }
  return Status::ok();
}

Status measure(Pipe& go, int reports, const MeasureOptions& options, Row& row) {
  if (Status ready = read_reports(reports, nullptr); !ready) return ready;
  const auto before = bench::read_process_cost(options.pids);
  if (!before) return before.status();
  go.to.reset();
  if (Status done = read_reports(reports, &row); !done) return done;
  const auto after = bench::read_process_cost(options.pids);
  if (!after) return after.status();
  const bench::ProcessCost cost = after.value() - before.value();
  row.wall_ns += cost.wall_ns;
  row.server_cpu_ns += cost.cpu_ns;
  return Status::ok();
}

}  // namespace

Status run_processes(const Side& side, const MeasureOptions& options, Row& row) {
  auto go = make_pipe();
  if (!go) return go.status();
  auto reports = make_pipe();
  if (!reports) return reports.status();
  std::vector<pid_t> children;
  for (size_t i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      go.value().to.reset();
      be_child(side, i, options, go.value().from.get(), reports.value().to.get());
    }
    if (child > 0) children.push_back(child);
  }
  reports.value().to.reset();
  Status measured = measure(go.value(), reports.value().from.get(), options, row);
  go.value().to.reset();
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return measured;
}

}  // namespace egret::bench_library
