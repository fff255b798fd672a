// Ops of one lane that wait until the store of their client's own thread executes them together (op/direct_store.h), so that
// their cache misses overlap: what a message is for a lane whose ops go by slots, without encoding and decoding.
//
//   add(op, waiter) ─▶ packed, with key and value ─▶ take(): the next ones, as many as a store executes at once ─▶ waiter(i)
//
// Owned by a ClientLane. Thread: the worker's. Memory: kBytes, allocated with the object; of them, what was filled is in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "op/direct_store.h"
#include "op/op.h"
#include "wire/plain.h"

namespace egret::rpc {

class Waiter;

class GatheredOps {
 public:
  bool empty() const { return taken_ == end_; }
  size_t size() const { return count_; }
  // False: it has no room, perhaps until the others are taken.
  bool add(const op::Op& op, Waiter* waiter) {
    const bool is_bare = wire::is_bare_get(op);
    const Head head{op.hash,
                    waiter,
                    is_bare ? 0 : static_cast<uint32_t>(op.value.size()),
                    op.options,
                    static_cast<uint8_t>(op.key.size()),
                    is_bare};
    if (kBytes - end_ < size_of(head)) return false;
    char* at = bytes_.get() + end_;
    at = put(at, &head, sizeof head);
    if (!is_bare) at = put(at, &op, sizeof op);
    at = put(at, op.key.data(), op.key.size());
    if (!is_bare) put(at, op.value.data(), op.value.size());
    end_ += size_of(head);
    ++count_;
    return true;
  }
  // The oldest that were not taken yet. Their keys and values stay valid until the next add().
  std::span<const op::Op> take() {
    size_t count = 0;
    for (; count < ops_.size() && taken_ < end_; ++count) taken_ += unpack(bytes_.get() + taken_, count);
    count_ -= count;
    if (taken_ == end_) taken_ = end_ = 0;
    return std::span(ops_).first(count);
  }
  // Of an op of the last take().
  Waiter* waiter(size_t index) const { return waiters_[index]; }

 private:
  static constexpr size_t kBytes = 48 << 10;  // some 1,200 gets with keys of 16 bytes
  static constexpr size_t kAlign = 8;
  struct Head {
    uint64_t hash;
    Waiter* waiter;
    uint32_t value_length;
    uint16_t options;
    uint8_t key_length;
    bool is_bare;  // a get of which this head says all; else the op lies behind it
  };

  static size_t size_of(const Head& head) {
    const size_t bytes = sizeof head + (head.is_bare ? 0 : sizeof(op::Op)) + head.key_length + head.value_length;
    return (bytes + kAlign - 1) / kAlign * kAlign;
  }
  static char* put(char* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return to + bytes;
  }
  size_t unpack(const char* at, size_t index) {
    Head head;
    std::memcpy(&head, at, sizeof head);
    const char* key = at + sizeof head;
    op::Op& op = ops_[index];
    if (!head.is_bare) {
      std::memcpy(&op, key, sizeof op);
      key += sizeof op;
      op.value = {key + head.key_length, head.value_length};
    } else {
      if (!is_bare_[index]) op = op::Op{};
      op.code = op::OpCode::kGet;
      op.options = head.options;
      op.hash = head.hash;
    }
    op.key = {key, head.key_length};
    is_bare_[index] = head.is_bare;
    waiters_[index] = head.waiter;
    return size_of(head);
  }

  const std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kBytes);
  size_t taken_ = 0;  // what lies before it was taken
  size_t end_ = 0;
  size_t count_ = 0;  // of what was not taken
  std::array<op::Op, op::DirectStore::kMostTogether> ops_{};
  std::array<Waiter*, op::DirectStore::kMostTogether> waiters_{};
  std::array<bool, op::DirectStore::kMostTogether> is_bare_{};  // which of ops_ hold no more than a bare get
};

}  // namespace egret::rpc
