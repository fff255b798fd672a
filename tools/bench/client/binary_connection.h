// A connection in memcached's binary protocol: GET and SET, each answered. As clients of that protocol do, a get of
// several keys is a GETKQ for each (only hits are answered) and a NOOP, whose answer ends them.
//
// Every message has its own number in `opaque`, so answers that are late, repeated or for another request are detected.
#pragma once

#include <string_view>

#include "bench/client/connection.h"

namespace egret::bench {

class BinaryConnection final : public Connection {
 public:
  BinaryConnection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally);

  void add_get(std::span<const uint32_t> keys, uint64_t intended_ns) override;
  void add_set(uint32_t key, uint64_t version, uint64_t intended_ns) override;

 private:
  struct Answer;

  Step judge(std::string_view input, uint64_t now_ns) override;
  Step judge_set(const Answer& answer, uint64_t now_ns);
  Step judge_get(const Answer& answer, uint64_t now_ns);
  Step judge_multiget(const Answer& answer, uint64_t now_ns);
  void count_get(const Answer& answer, uint32_t key, std::string_view expected_key);
  Step lose_step(const Answer& answer);

  uint32_t next_opaque_ = 1;      // of the next message that is composed
  uint32_t expected_opaque_ = 1;  // of the current request's first message
};

}  // namespace egret::bench
