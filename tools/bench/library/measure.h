// Rounds over rows and sides: what a call took, and what CPU it took.
#pragma once

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

struct MeasureOptions {
  double seconds = 1;  // of a turn
  size_t rounds = 3;
  size_t keys = 10'000;
  size_t value_bytes = 100;
  std::vector<pid_t> pids;  // of servers
};

enum class Kind : uint8_t { kGet, kPaced, kMultiget, kPipelined, kProcesses };
inline constexpr Kind kKinds[] = {Kind::kGet, Kind::kPaced, Kind::kMultiget, Kind::kPipelined, Kind::kProcesses};
inline constexpr uint64_t kPaceNs = 1'000'000;  // from the beginning of a call to that of the next
inline constexpr size_t kMultigetKeys = 50;
inline constexpr size_t kUnderWay = 32;

// One kind by one side, all rounds together.
struct Row {
  Kind kind{};
  const Side* side = nullptr;
  bench::Histogram calls;  // ns
  uint64_t gets = 0;
  uint64_t wall_ns = 0, own_cpu_ns = 0, server_cpu_ns = 0;
};

// Stores what is asked for.
base::Status fill(Side& side, const MeasureOptions& options);
// One turn of row.kind; adds to the row. An error: an answer was wrong, or did not come.
base::Status run_turn(Side& side, const MeasureOptions& options, Row& row, const std::atomic<bool>& stop);

// Rows by kind, then side. An error: an answer was wrong, or did not come.
base::Expected<std::vector<std::unique_ptr<Row>>> measure(const std::vector<std::unique_ptr<Side>>& sides,
                                                          const MeasureOptions& options, const std::atomic<bool>& stop);

}  // namespace egret::bench_library
