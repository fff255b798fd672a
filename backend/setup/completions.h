// At which intervals several threads finish work, while they have some: what one piece of it costs of their common time. It
// tells by how much they hold each other up: four threads that wait for one device finish as often as one.
//
//   begun ──────────────── done      the interval is what has passed since the piece before was done, or since this one was
//       begun ──────────────── done  begun, if that is later: pauses without work count for nothing
//                       └ this ┘
//
// Time is given. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::backend {

class Completions {
 public:
  uint64_t interval_ns(uint64_t begun_ns, uint64_t done_ns) {
    const uint64_t from_ns = std::max(begun_ns, last_ns_);
    last_ns_ = std::max(last_ns_, done_ns);
    return done_ns - std::min(from_ns, done_ns);
  }

 private:
  uint64_t last_ns_ = 0;
};

}  // namespace egret::backend
