// Ops of one lane that wait until the store of their client's own thread executes them together (op/direct_store.h), so that
// their cache misses overlap: what a message is for a lane whose ops go by slots, without encoding and decoding.
//
//   add(op, waiter) ─▶ a copy, with key and value ─▶ ops(), waiter(i) ─▶ clear()
//
// Owned by a ClientLane. Thread: the worker's. Memory: allocated with the object.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "op/direct_store.h"
#include "op/op.h"

namespace egret::rpc {

class Waiter;

class GatheredOps {
 public:
  bool empty() const { return count_ == 0; }
  // `is_bare`: the op is a get that has nothing but key, options and hash. False: there is no room until clear().
  bool add(const op::Op& op, Waiter* waiter, bool is_bare) {
    if (count_ == kMost || op.key.size() + op.value.size() > kBytes - used_) return false;
    op::Op& copy = ops_[count_];
    if (!is_bare) {
      copy = op;
      copy.value = keep(op.value);
    } else {
      if (!is_bare_[count_]) copy = op::Op{};
      copy.code = op::OpCode::kGet;
      copy.options = op.options;
      copy.hash = op.hash;
    }
    copy.key = keep(op.key);
    is_bare_[count_] = is_bare;
    waiters_[count_++] = waiter;
    return true;
  }
  std::span<const op::Op> ops() const { return std::span(ops_).first(count_); }
  Waiter* waiter(size_t index) const { return waiters_[index]; }
  void clear() { count_ = used_ = 0; }

 private:
  static constexpr size_t kMost = op::DirectStore::kMostTogether;
  static constexpr size_t kBytes = 48 << 10;  // of keys and values

  std::string_view keep(std::string_view bytes) {
    char* const to = bytes_.get() + used_;
    bytes.copy(to, bytes.size());
    used_ += bytes.size();
    return {to, bytes.size()};
  }

  const std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kBytes);
  size_t used_ = 0;
  size_t count_ = 0;
  std::array<op::Op, kMost> ops_{};
  std::array<bool, kMost> is_bare_{};  // which of ops_ hold no more than a bare get
  std::array<Waiter*, kMost> waiters_{};
};

}  // namespace egret::rpc
