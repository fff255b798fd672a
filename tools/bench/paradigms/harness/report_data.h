// What a run of `egret-bench paradigms` found: plain values, from which the table, the JSON, the model and the pictures
// are made. Who makes one of those reads this and nothing else of the harness.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_nic/nic.h"
#include "bench_paradigms/harness/outcome.h"
#include "bench_paradigms/harness/setting.h"
#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

// Of the rounds.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
Spread spread_of(std::vector<double> values);

// What ranks with what: a store with stores, a sequencer with sequencers; what can only get, or whose puts store nothing
// (drtm-em), is a bound, and ranks nowhere.
enum class Class : uint8_t { kStore, kSequencer, kBound };

// One paradigm on one workload.
struct Row {
  std::string id;
  std::string title;
  std::string source;
  Class rank = Class::kStore;
  uint8_t marks = 0;          // Mark, of the variant that ran
  std::string not_available;  // why; empty: it ran

  // By time: of the rounds. All 0 over the memory fabric.
  Spread mops;
  Spread p50_us, p99_us;
  Spread client_cpu_us;   // an op
  Spread server_cpu_us;   // an op, of passes that found something to do
  Spread server_spin_us;  // an op, polling included

  // By count: of all rounds together, warm-up included; divided by `ops`, what an op costs.
  uint64_t ops = 0;
  uint64_t gets = 0;  // of them
  VerbCounts clients, servers;
  uint64_t hits = 0, misses = 0, done = 0, full = 0, lost = 0, failed = 0, unanswered = 0;
  uint64_t wrong = 0;
  std::array<uint64_t, kFaults> faults{};
  std::string first_wrong;  // a sentence
  Trouble trouble;
  double expected_steps = 0;  // READs of a get, by a walk over the loaded store; 0: not told, or puts READ, too

  bool has_run() const { return not_available.empty(); }
  double per_op(uint64_t count) const { return ops == 0 ? 0 : static_cast<double>(count) / static_cast<double>(ops); }
  double client_verbs(PairType type, Verb verb) const {
    return per_op(clients.posted[static_cast<size_t>(type)][static_cast<size_t>(verb)]);
  }
  double server_verbs(PairType type, Verb verb) const {
    return per_op(servers.posted[static_cast<size_t>(type)][static_cast<size_t>(verb)]);
  }
};

// One workload: a table.
struct CaseReport {
  Case workload;
  std::vector<Row> rows;  // in the order of the table of paradigms
};

struct Report {
  Setting setting;
  std::vector<std::string> hosts;  // the storing one first; a sentence each
  Capabilities device;             // of all together
  bool is_in_memory = false;       // no device: counts only, no time means anything
  std::vector<CaseReport> cases;
  bool is_interrupted = false;
  std::optional<bench_nic::Nic> nic = {};  // that the counted verbs are modelled on; none: nothing is

  // Times say something about RDMA.
  bool has_times() const { return !is_in_memory && !device.is_emulated; }
};

// Marks that these devices promise to keep, and that nobody has named as broken: what relies on nothing else promises that
// no answer is wrong. A mark that is neither promised nor broken (W on a card that tells nothing of its order) is not here.
uint8_t kept_marks(const Report& report);
// Wrong answers of rows that promise none.
uint64_t broken_promises(const Report& report);

// A row of a run that has been: `outcomes` are the rounds'.
Row row_of(const Paradigm& paradigm, const Plan& plan, const std::vector<RunOutcome>& outcomes);
Row row_not_available(const Paradigm& paradigm, const Plan& plan, std::string why);

}  // namespace egret::bench_paradigms
