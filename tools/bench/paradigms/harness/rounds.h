// The rounds: every paradigm in turn on every workload, again and again; what comes out is the report's values.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/status.h"
#include "bench_paradigms/harness/outcome.h"
#include "bench_paradigms/harness/report_data.h"
#include "bench_paradigms/harness/setting.h"
#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

struct RunAnswer {
  std::string not_available;  // why; empty: it ran
  RunOutcome outcome;
};

// One run of one paradigm: its nodes are made, loaded, driven, and go.
class Runner {
 public:
  virtual ~Runner() = default;
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Fails when nothing more can be run.
  virtual base::Expected<RunAnswer> run(const Paradigm& paradigm, const Case& one, const std::atomic<bool>& stop) = 0;
  // Of all devices together.
  virtual Capabilities capabilities() const = 0;
};

// The paradigms that a setting names, in the table's order. Fails on a name that is not in the table.
base::Expected<std::vector<const Paradigm*>> chosen(const Setting& setting);

// The report without its `hosts`. `say` is given a line for each run. Stops early when `stop` is set.
base::Expected<Report> run_rounds(const Setting& setting, Runner& runner,
                                  const std::function<void(const std::string&)>& say, const std::atomic<bool>& stop);

}  // namespace egret::bench_paradigms
