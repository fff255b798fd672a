// Rounds over rows and sides: what a call took, and what CPU it took.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "bench/histogram.h"
#include "bench_library/side.h"

namespace egret::bench_library {

enum class Kind : uint8_t { kGet, kPaced, kMultiget, kPipelined, kProcesses };
struct KindName {
  Kind kind;
  const char* word;  // of the command line
  const char* text;  // of the table
};
inline constexpr std::array<KindName, 5> kKindNames{{{Kind::kGet, "get", "get, one at a time"},
                                                     {Kind::kPaced, "paced", "get, one a ms"},
                                                     {Kind::kMultiget, "multiget", "multiget of 50"},
                                                     {Kind::kPipelined, "pipelined", "32 gets under way"},
                                                     {Kind::kProcesses, "processes", "50 processes"}}};
// In the order of Kind.
inline const KindName& name_of(Kind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

struct MeasureOptions {
  std::vector<Kind> kinds = {};  // rows of measure(); empty: all
  double seconds = 1;            // of a turn
  size_t rounds = 3;
  size_t keys = 10'000;
  size_t value_bytes = 100;
  std::vector<pid_t> pids;  // of servers
};

inline constexpr uint64_t kPaceNs = 1'000'000;  // from the beginning of a call to that of the next
inline constexpr size_t kMultigetKeys = 50;

// One kind by one side, all rounds together.
struct Row {
  Kind kind{};
  Side* side = nullptr;
  bench::Histogram calls;  // ns; pipelined: of 1,024 gets, by 32
  uint64_t gets = 0;
  uint64_t wall_ns = 0, own_cpu_ns = 0, server_cpu_ns = 0;
};

// Stores what is asked for.
base::Status fill(Side& side, const MeasureOptions& options);
// One turn of row.kind; adds to the row. An error: an answer was wrong, or did not come.
base::Status run_turn(Side& side, const MeasureOptions& options, Row& row, const std::atomic<bool>& stop);

// Rows by kind, then side; none of processes for a side that may not fork. An error: an answer was wrong, or did not come.
base::Expected<std::vector<std::unique_ptr<Row>>> measure(const std::vector<std::unique_ptr<Side>>& sides,
                                                          const MeasureOptions& options, const std::atomic<bool>& stop);

}  // namespace egret::bench_library
