// The listening side's work: which points are measured, in which order, on which hosts; and all that came of them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench_verbs/advice.h"
#include "bench_verbs/further.h"
#include "bench_verbs/station.h"

namespace egret::bench_verbs {

// What to measure: the command line.
struct Wanted {
  uint32_t clients = 1;               // connecting hosts (or processes)
  std::vector<uint32_t> threads;      // ascending, 1 among them
  uint32_t queue_pairs = 1;           // of each thread, to each host
  uint32_t depth = 16;                // pipelined: under way on each queue pair
  std::vector<uint32_t> sizes;        // ascending
  std::vector<uint32_t> value_sizes;  // Figure 8's
  std::vector<uint32_t> fetch_sizes;  // Figure 8's
  double duration_s = 0.3;
  std::vector<ResultShare> results;
  uint32_t server_threads = 0;  // 0: half of this host's processors
  std::vector<uint32_t> sweep;  // ascending: queue pairs of this host
  // Known once the hosts have greeted each other: why there are none; else empty.
  std::string no_atomics, no_sends, no_sweep;
  bool advise = false;  // only what suggestions follow from is measured and printed
};

inline constexpr uint32_t kSmall = 32;  // bytes: what the paper's Table I and Figure 1 are about

enum class Direction : uint8_t { kInboundRead, kInboundWrite, kOutboundWrite };
inline constexpr Direction kDirections[] = {Direction::kInboundRead, Direction::kInboundWrite,
                                            Direction::kOutboundWrite};

// Pipelined and unpipelined. Rates are sums over all posting threads and hosts.
struct Both {
  Figures pipelined;
  Figures unpipelined;
};
struct ByThreads {
  uint32_t threads = 0;
  Both of[3];                       // by Direction, kSmall bytes
  std::vector<Figures> by_clients;  // out-bound WRITE, unpipelined, to the first 1, 2 ... clients: Table I
};
struct BySize {
  uint32_t size = 0;
  Both of[3];
};

struct Results {
  std::vector<std::string> hosts;  // this one, then the clients: device and port
  bool emulated = false;
  double wake_us = 0;  // the clients' longest
  uint32_t read_depth = 1;
  uint32_t inline_bytes = 0;
  uint32_t read_pipelined = 0;  // what was under way of READs: depth, or the read depth if that is less
  std::vector<ByThreads> by_threads;
  uint32_t best_threads[3] = {1, 1, 1};  // by Direction: pipelined
  std::vector<BySize> by_size;
  std::vector<std::vector<Figures>> fetches;  // [fetch size][value size], pipelined
  Figures fetch_latency;                      // one thread, unpipelined, the smallest fetch size
  Figures fetch_of_thread;                    // one thread, pipelined, the same
  Further further;
  uint64_t wrong_bytes = 0;  // over everything
  Posted posted;             // over everything
  uint64_t points = 0;
};

// Measures on stations that are connected and greeted. Progress is a line to `say` per point.
base::Expected<Results> measure(const Wanted& wanted, const std::vector<Station*>& stations,
                                const std::function<void(const std::string&)>& say, const std::atomic<bool>& stop);
// How many points that are at most, for an estimate of the time.
uint32_t points_of(const Wanted& wanted);

Measured measured_of(const Wanted& wanted, const Results& results);

// The connecting side's work: does what it is told until the end; gives the report it was sent.
base::Expected<std::string> serve_points(Station& station, const std::atomic<bool>& stop);

}  // namespace egret::bench_verbs
