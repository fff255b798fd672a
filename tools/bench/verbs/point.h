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
};

inline constexpr uint32_t kRequestBytes = 64;  // of a kFetch's request

struct Point {
  Kind kind = Kind::kRead;
  uint32_t size = 0;         // bytes of the verb; of a kFetch's response
  uint32_t fetch = 0;        // kFetch: bytes of the first READ
  uint32_t threads = 1;      // that post, each on its own queue pairs
  uint32_t queue_pairs = 1;  // of each thread, to each host
  uint32_t depth = 1;        // under way on each queue pair; 1: one per *thread*, on its queue pairs in turn
  uint32_t number = 0;       // chooses the bytes, so that those of another point are not mistaken for them
  uint32_t reserved = 0;
  uint64_t warmup_ns = 0;
  uint64_t duration_ns = 0;
};

struct Figures {
  uint64_t ops = 0;     // completed while it was measured
  uint64_t reads = 0;   // posted, of all time
  uint64_t writes = 0;  // the same
  uint64_t wrong_bytes = 0;
  double ops_per_s = 0;
  double mean_us = 0;  // unpipelined only: from posting to completion
  double p50_us = 0;
  double p99_us = 0;
};

}  // namespace egret::bench_verbs
