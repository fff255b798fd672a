// Drives one client node: draws ops, begins them, polls, judges and counts the answers. The same code where every node
// has its thread and where one thread steps all of them.
//
//   Workload ─▶ draw ─▶ Judge::begin ─▶ ClientNode::begin            (as the window, or the schedule, lets it)
//                        Judge::judge ◀─ ClientNode::poll ─▶ Tally
//
// Closed: an op is begun as soon as one of the window is answered. Open (Pace::interval_ns): ops are due at fixed times,
// and their latency counts from then, however late they are begun. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_paradigms/harness/judge.h"
#include "bench_paradigms/harness/outcome.h"
#include "bench_paradigms/harness/workload.h"

namespace egret::bench_paradigms {

struct Pace {
  uint32_t window = 1;
  uint64_t interval_ns = 0;  // between two ops of this client; 0: closed
  uint64_t first_due_ns = 0;
  uint64_t ops = UINT64_MAX;  // no more than these
};

// How much all clients of a run are to do together.
struct Load {
  double rate = 0;   // ops/s, on schedule; 0: closed
  uint64_t ops = 0;  // 0: no end
};
// One client's part: the rate is dealt over all, and their due times are spread.
Pace pace_of(const Plan& plan, const Load& load, uint32_t client, uint64_t now_ns);

using Clock = uint64_t (*)();  // ns; never goes back

class Driver {
 public:
  struct Parts {
    const Plan& plan;
    ClientNode& node;
    Knowledge& knowledge;
    WorkloadSpec workload;
    Clock clock;
  };
  Driver(const Parts& parts, uint32_t client, const Pace& pace);

  // Polls once, then begins what may be begun. Whether anything happened.
  bool step();

  // From here on answers count as measured, up to end_round.
  void begin_round() { is_measuring_ = true; }
  void end_round() { is_measuring_ = false; }
  // Begins no more: what is under way is still answered.
  void drain();
  bool is_idle() const { return under_way_ == 0; }
  uint64_t answered() const { return tally_.ops; }
  bool is_finished() const { return is_idle() && (is_draining_ || begun_ == pace_.ops); }

  // Ops under way count as unanswered.
  Tally tally() const;

 private:
  struct Place {
    Expectation expectation;
    uint64_t since_ns = 0;  // closed: begun; open: due
    uint32_t turn = 0;      // of this place: an answer to an earlier op is told from one to this
    bool is_taken = false;
  };
  bool may_begin(uint64_t now);
  bool begin(uint64_t now);
  bool draw();
  void take(const Result& result, uint64_t now);
  void count(const Expectation& expectation, Outcome outcome);
  void count_number(std::string_view value);
  void note(Fault fault, uint32_t key);

  const Plan& plan_;
  ClientNode& node_;
  Judge judge_;
  Workload workload_;
  Clock clock_;
  Pace pace_;
  uint64_t next_version_;
  uint64_t version_step_;
  std::string value_;
  std::vector<Place> places_;
  std::vector<uint32_t> free_;
  std::optional<Expectation> drawn_;  // that the node has not taken yet
  uint64_t next_due_ns_;
  uint64_t begun_ = 0;
  uint32_t under_way_ = 0;
  bool is_measuring_ = false;
  bool is_draining_ = false;
  Tally tally_;
};

}  // namespace egret::bench_paradigms
