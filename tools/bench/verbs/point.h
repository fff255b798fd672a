// What one measurement is, and what it says. Plain values: they travel between the two hosts as they are (both run
// the same build; the greeting checks it).
#pragma once

#include <cstdint>

namespace egret::bench_verbs {

enum class Kind : uint32_t {
  kRead,
  kWrite,
  // What a client of remote fetching does, without a server: WRITE a request, READ `fetch` bytes of the response, and,
  // if the response is longer, READ the rest.
  kFetch,
  // Atomics on 8 bytes of each slot: FETCH_ADD of 1; COMPARE_SWAP of what is there by one more.
  kFetchAdd,
  kCompareSwap,
  // SEND between unreliable datagram (UD) queue pairs, with immediate data that say what is sent.
  kSend,
};

constexpr bool is_atomic(Kind kind) {
  return kind == Kind::kFetchAdd || kind == Kind::kCompareSwap;
}

// On which queue pairs of a station.
enum class Set : uint32_t {
  kConnected,       // connected by rdma_cm, a completion queue each
  kDatagrams,       // made by hand, UD, a completion queue for each thread
  kSweep,           // made by hand, RC, many, with small slots; a completion queue for each thread
  kSweepDatagrams,  // the same, UD
};
inline constexpr uint32_t kSets = 4;

inline constexpr uint32_t kRequestBytes = 64;  // of a kFetch's request
inline constexpr uint32_t kAtomicBytes = 8;

struct Point {
  Kind kind = Kind::kRead;
  uint32_t size = 0;         // bytes of the verb; of a kFetch's response
  uint32_t fetch = 0;        // kFetch: bytes of the first READ
  uint32_t threads = 1;      // that post; thread t on queue pairs t, t + threads ...
  uint32_t queue_pairs = 1;  // in use, to each host
  uint32_t depth = 1;        // under way on each queue pair
  uint32_t number = 0;       // chooses the bytes, so that those of another point are not mistaken for them
  Set set = Set::kConnected;
  uint32_t one_by_one = 0;  // 1: one verb under way in each *thread*, on its queue pairs in turn, and each timed
  uint32_t reserved = 0;
  uint64_t warmup_ns = 0;
  uint64_t duration_ns = 0;
};

// Verbs posted, of all time.
struct Posted {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t fetch_adds = 0;
  uint64_t compare_swaps = 0;
  uint64_t sends = 0;
  void add(const Posted& other) {
    reads += other.reads;
    writes += other.writes;
    fetch_adds += other.fetch_adds;
    compare_swaps += other.compare_swaps;
    sends += other.sends;
  }
};

struct Figures {
  uint64_t ops = 0;  // completed while it was measured; of SENDs in-bound: received
  Posted posted;
  uint64_t received = 0;    // kSend: of all time
  uint64_t increments = 0;  // atomics: that the other side's memory shows
  uint64_t big_endian = 0;  // atomics: 1: answers came with their bytes in that order
  uint64_t wrong_bytes = 0;
  double ops_per_s = 0;
  double mean_us = 0;  // one by one only: from posting to completion
  double p50_us = 0;
  double p99_us = 0;
};

}  // namespace egret::bench_verbs
