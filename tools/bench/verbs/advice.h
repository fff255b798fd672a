// Suggests values of Egret's options from measured rates, with the arithmetic. Pure functions.
//
// F, the bytes a first READ takes (RFP, sections III and IV: docs/architecture.md, References): the F with the largest sum, over the results an application gets, of the READ rate at F where the result fits, and half of
// it where a second READ is needed.
// R, the refetches that a lane allows: a server of T threads whose ops take longer than T / (out-bound WRITE rate) has
// fewer results than its device can post WRITEs, so delivering results costs no throughput. R is how many unpipelined
// READs fit into that time.
// Q*, the sessions above which results are pushed: beyond so many queue pairs in-bound READs are fewer than out-bound
// WRITEs, so that a push takes the device less than a fetch.
// Spin, how long a worker polls before it sleeps: until nearly all fetches are over, and then for as long as sleeping and
// being woken takes. So it never spends more than twice what it would, had it known when the result comes.
// Window, the slots of a lane: the messages that one worker needs in flight for its pipelined rate (rate × round trip).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace egret::bench_verbs {

struct RateBySize {
  uint32_t size = 0;
  double ops_per_s = 0;
};

struct ResultShare {
  uint32_t value_bytes = 0;
  double share = 0;  // of all results
};

// Bytes of a response with one result, beyond its value: header 40, result head 8 (wire/README.md).
inline constexpr uint32_t kResultOverhead = 48;

// On so many queue pairs of the server's device.
struct RatesByPairs {
  uint32_t pairs = 0;
  double inbound_read = 0;
  double outbound_write = 0;
};

struct Measured {
  std::vector<RateBySize> inbound_read;    // pipelined, by size, ascending
  std::vector<RateBySize> outbound_write;  // the same sizes
  double peak_outbound_write = 0;          // ops/s, small, the best number of threads
  double read_us = 0;                      // unpipelined, small, one thread: mean
  double fetch_us = 0;                     // unpipelined WRITE and READ, one thread: mean
  double fetch_rate_of_thread = 0;         // pipelined, one thread, ops/s
  uint32_t measured_depth = 0;             // of that
  uint32_t read_depth = 1;                 // READs that a queue pair may have under way
  uint32_t server_threads = 1;
  std::vector<RatesByPairs> by_pairs;  // ascending; empty: not measured
  double fetch_p99_us = 0;             // as fetch_us
  double wake_us = 0;                  // of a thread of the clients' hosts that sleeps; 0: not measured
};

struct FetchCandidate {
  uint32_t fetch = 0;
  double read_rate = 0;  // at that size, between its measured neighbours
  double covered = 0;    // share of the results that fit
  double score = 0;      // ops/s of READs' worth of results
};

struct Advice {
  std::vector<FetchCandidate> candidates;
  uint32_t fetch = 0;
  uint32_t refetches = 0;
  double refetch_budget_us = 0;  // T / out-bound rate
  uint32_t window = 0;
  double under_way = 0;              // rate × round trip, before rounding
  bool depth_was_the_limit = false;  // the rate might have been higher with more under way
  uint32_t queue_pairs = 1;
  bool has_crossing = false;   // whether READs fall below WRITEs
  uint32_t pairs_most = 0;     // Q*, in queue pairs: the most measured ones before that, or the fewest measured
  uint32_t sessions_most = 0;  // the same, in sessions
  uint32_t spin_us = 0;        // 0: not measured
  uint32_t converge_at = 0;    // the smallest size from which in-bound READs gain less than 10 %; 0: none measured
};

inline constexpr uint32_t kMinFetch = 256;
inline constexpr uint32_t kMaxEvenFetch = 1024;  // up to here each step is looked at, beyond only what results need
inline constexpr uint32_t kMaxFetch = 1 << 16;   // what the option allows
inline constexpr uint32_t kFetchStep = 64;
inline constexpr uint32_t kMostSpinUs = 10'000;  // what the option allows
inline constexpr uint32_t kMinWindow = 2;        // what the options allow
inline constexpr uint32_t kMaxWindow = 64;
inline constexpr uint32_t kMaxRefetches = 1000;

double rate_at(const std::vector<RateBySize>& rates, uint32_t size);
Advice advise(const Measured& measured, const std::vector<ResultShare>& results);

// Where a rate by number of queue pairs falls: the first number, beyond that of the best rate, from which on all are
// below `kFallShare` of the best. `pairs` 0: nowhere.
struct RateByPairs {
  uint32_t pairs = 0;
  double ops_per_s = 0;
};
struct Fall {
  uint32_t pairs = 0;
  double share = 0;  // of the best, there
  double best = 0;
  uint32_t best_pairs = 0;
};
inline constexpr double kFallShare = 0.8;
Fall falls_from(const std::vector<RateByPairs>& rates);

// "32:0.5,1024:0.5", or "32,64" for equal shares; sizes of values. Shares are scaled to sum 1. Empty: what is wrong is
// in `complaint`.
std::vector<ResultShare> parse_results(const std::string& text, std::string& complaint);

}  // namespace egret::bench_verbs
