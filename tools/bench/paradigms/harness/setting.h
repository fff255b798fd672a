// What is run: plain values, from the command line or a preset, the same on every host.
//
//   Setting (one run of the program) ── its lists multiplied ──▶ Case (one table of the report) ── for each id ──▶ Plan
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

// Who may put a key. kOne: key n is put and erased by client n mod clients alone, so that an old value can be told from a
// new one. kAny: every client, so that writers meet; old values are not told then.
enum class Writers : uint8_t { kOne, kAny };

// One workload.
struct Case {
  uint32_t value_bytes = 32;
  double gets = 0.95;
  double rate = 0;  // ops/s of all clients together, on schedule; 0: closed, as fast as answers come
};

struct Setting {
  // The workload.
  uint32_t keys = 1'000'000;
  uint32_t key_bytes = 16;
  std::vector<uint32_t> value_bytes = {32};
  std::vector<double> gets = {0.95};
  std::vector<double> rates = {0};
  double erases = 0;  // of what are no gets
  double zipf = 0;    // exponent; 0: uniform
  Writers writers = Writers::kOne;
  uint64_t seed = 1;
  // The nodes.
  uint32_t server_cores = 1;
  uint32_t clients = 4;  // threads of all hosts together
  uint32_t window = 8;
  uint32_t busy = 0;  // processes that spin on the storing host meanwhile
  Tuning tuning;
  // The rounds.
  uint32_t rounds = 5;
  double warm_up_s = 1;
  double round_s = 1;
  uint64_t ops = 0;              // instead of times: so many of all clients together, and no warm-up; 0: by time
  std::vector<std::string> ids;  // of the table of paradigms; empty: all
  uint8_t broken_marks = 0;      // what this device is known to break (Mark)
  std::string preset;            // whose values these are; empty: none
};

// value_bytes × gets × rates, in this order.
std::vector<Case> cases_of(const Setting& setting);
// But for `keys`.
Plan plan_of(const Setting& setting, const Case& one);

}  // namespace egret::bench_paradigms
