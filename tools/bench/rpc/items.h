// The ops and their expected results. Keys are the numbered ones of bench_store, drawn beforehand. A value identifies
// its key and one of two versions; every set of a key stores the other version. So an answer of another key, a mixture
// of two values, and a value from before a set are detected.
//
// One client thread, one session at a time, so that all ops on a key are executed in the order in which they were
// drawn.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench_store/keys.h"
#include "op/op.h"

namespace egret::bench_rpc {

// What must be known of a sent op when its result comes.
class Sent {
 public:
  Sent() = default;
  Sent(uint32_t number, bool second, bool is_set)
      : packed_(uint64_t{number} << 2 | (second ? 2 : 0) | (is_set ? 1 : 0)) {}
  bool is_set() const { return (packed_ & 1) != 0; }
  uint64_t value() const { return packed_ >> 1; }  // names key and version

 private:
  uint64_t packed_ = 0;
};

class Items {
 public:
  static constexpr uint32_t kMaxValueSize = 1024;

  // `value_size`: a multiple of 8, at most kMaxValueSize. One op in `ops_per_set` is a set; 0: none.
  Items(uint32_t count, uint32_t value_size, uint32_t ops_per_set);

  uint32_t count() const { return count_; }
  // The next op: a get or a set of a random key. Call take() after sending it; until then it stays the next one, and
  // `op`'s views are valid.
  void peek(op::Op& op);
  Sent take();
  // The op that stores item `number` for the first time.
  void peek_fill(uint32_t number, op::Op& op);

  // Whether `result` is the right answer to `sent`. Of a cut value the bytes that are there are checked.
  bool is_right(const Sent& sent, const op::Result& result) const;

 private:
  struct Drawn {
    bench_store::KeyText text;
    uint32_t number;
  };
  bool is_second(uint32_t number) const { return (second_[number / 64] >> number % 64 & 1) != 0; }
  std::string_view write_value(uint64_t value);

  const uint32_t count_;
  const uint32_t words_;  // 8-byte words of a value
  const uint32_t ops_per_set_;
  std::vector<Drawn> drawn_;
  size_t at_ = 0;
  uint32_t until_set_;
  std::vector<uint64_t> second_;  // a bit for each item: it has its second version
  bench_store::KeyText fill_key_{};
  std::array<uint64_t, kMaxValueSize / 8> value_{};
};

}  // namespace egret::bench_rpc
