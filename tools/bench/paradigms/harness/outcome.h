// What a node's part in one run came to: plain sums, which travel as they lie in memory and are added up.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "bench/histogram.h"
#include "bench_paradigms/harness/judge.h"
#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

// The numbers that a sequencer has given, by sums: clients of hosts that know nothing of each other add them up.
struct Numbers {
  uint64_t count = 0;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  uint64_t digest = 0;  // sum of a hash of each, modulo 2^64

  void take(uint64_t number);
  void operator+=(const Numbers& other);
  // More than there are from the least to the most.
  bool are_too_many() const { return count > 0 && count - 1 > most - least; }
  // From the least to the most every one has been given, and none twice. Looks at each: a nanosecond or two.
  bool are_each_once() const;
};

// Answers. All of the run, warm-up included, unless it says otherwise.
struct Tally {
  uint64_t ops = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t done = 0;
  uint64_t full = 0;
  uint64_t lost = 0;
  uint64_t failed = 0;
  uint64_t gets = 0;        // of ops
  uint64_t unanswered = 0;  // that were still under way when the run was given up
  Numbers numbers;          // sequencers'
  std::array<uint64_t, kFaults> faults{};
  uint32_t first_wrong_key = 0;
  Fault first_wrong = Fault::kNone;
  uint64_t measured_ops = 0;  // answered within the round
  bench::Histogram latency;   // ns, of those

  uint64_t wrong() const;
  void operator+=(const Tally& other);
};

// What threads spent within the round, in ns.
struct Spent {
  uint64_t cpu = 0;   // thread CPU clock
  uint64_t busy = 0;  // servers: of it, in passes that found something to do
};

// What a get should have cost, by ServerNode::walk over keys of the run.
struct Walked {
  uint64_t steps = 0;
  uint64_t gets = 0;
  void operator+=(const Walked& other) {
    steps += other.steps;
    gets += other.gets;
  }
};

struct NodeOutcome {
  bool is_server = false;
  Tally tally;  // clients
  Trouble trouble;
  VerbCounts verbs;  // posted since the node was loaded
  Spent spent;
  uint64_t round_ns = 0;  // how long the round took
  Walked walked;          // servers
};
static_assert(std::is_trivially_copyable_v<NodeOutcome>);

// All nodes of a run.
struct RunOutcome {
  Tally tally;
  Trouble trouble;
  VerbCounts clients, servers;
  Spent client_spent, server_spent;
  uint64_t round_ns = 0;  // the longest of the nodes'
  Walked walked;

  void add(const NodeOutcome& node);
  // All nodes are added: a number that clients of two hosts were given is Fault::kDuplicate. Where nothing was lost, failed
  // or asked for again no number is left out, so that a missing one tells of another that was given twice.
  void judge_numbers();
};

}  // namespace egret::bench_paradigms
