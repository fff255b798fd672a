#include "bench_rpc/items.h"

#include <algorithm>
#include <cstring>

#include "bench/sampler.h"

namespace egret::bench_rpc {
namespace {

constexpr size_t kAhead = 32;  // draws whose bit of second_ is on its way

// Word `i` of a value: a bijection of key and version, so no two values share a word.
uint64_t word(uint64_t value, uint32_t i) {
  return bench::mix64(value + 1) + i;
}

}  // namespace

// The numbers are those of bench_store::draw_uniform(), in its order.
Items::Items(uint32_t count, uint32_t value_size, uint32_t ops_per_set)
    : count_(count),
      words_(value_size / 8),
      ops_per_set_(ops_per_set),
      drawn_(bench_store::kDrawnKeys),
      until_set_(ops_per_set),
      second_(count / 64 + 1) {
  bench::Rng rng(3);
  for (Drawn& each : drawn_) {
    each.number = static_cast<uint32_t>(rng.next() % count);
    each.text = bench_store::key_text(each.number);
  }
}

void Items::peek(op::Op& op) {
  const Drawn& drawn = drawn_[at_];
  op.key = bench_store::view(drawn.text);
  op.code = op::OpCode::kGet;
  op.value = {};
  if (until_set_ != 1) return;
  op.code = op::OpCode::kSet;
  op.value = write_value(uint64_t{drawn.number} << 1 | (is_second(drawn.number) ? 0 : 1));
}

Sent Items::take() {
  const uint32_t number = drawn_[at_].number;
  at_ = (at_ + 1) % drawn_.size();
  __builtin_prefetch(&second_[drawn_[(at_ + kAhead) % drawn_.size()].number / 64]);
  const bool is_set = until_set_ == 1;
  if (ops_per_set_ != 0) until_set_ = is_set ? ops_per_set_ : until_set_ - 1;
  if (is_set) second_[number / 64] ^= uint64_t{1} << number % 64;
  return {number, is_second(number), is_set};
}

void Items::peek_fill(uint32_t number, op::Op& op) {
  fill_key_ = bench_store::key_text(number);
  op.code = op::OpCode::kSet;
  op.key = bench_store::view(fill_key_);
  op.value = write_value(uint64_t{number} << 1);
}

bool Items::is_right(const Sent& sent, const op::Result& result) const {
  if (sent.is_set()) return result.code == op::ResultCode::kStored;
  if (result.code != op::ResultCode::kHit || result.total_length != words_ * sizeof(uint64_t)) return false;
  if (result.value.size() > result.total_length) return false;
  const uint64_t first = word(sent.value(), 0);
  uint64_t difference = 0;
  const char* at = result.value.data();
  size_t left = result.value.size();
  for (uint64_t expected = first; left > 0; ++expected) {
    const size_t length = std::min(left, sizeof expected);
    uint64_t found = expected;
    std::memcpy(&found, at, length);
    difference |= found ^ expected;
    at += length;
    left -= length;
  }
  return difference == 0;
}

std::string_view Items::write_value(uint64_t value) {
  const uint64_t first = word(value, 0);
  for (uint32_t i = 0; i < words_; ++i) value_[i] = first + i;
  return {reinterpret_cast<const char*>(value_.data()), words_ * sizeof(uint64_t)};
}

}  // namespace egret::bench_rpc
