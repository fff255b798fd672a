// The memory that verbs of a set of queue pairs come from and go to, and the pattern of its bytes.
//
//   local    each queue pair's slots here: WRITEs and SENDs come from them, READs and atomics' answers land in them
//   target   each queue pair's slots as the *other* side reaches them; of UD pairs: where RECVs put what arrives
//
//   slot     [lead] [payload] [guard]      rounded up to 64 bytes, so that every payload is aligned
//
// The lead has a fetch's request, or the 40 bytes (GRH) that a device puts before a datagram. Every payload is a pattern
// of (point, queue pair, slot); an atomic's word begins as the first 8 bytes of it. Before a point its destination is
// poisoned, afterwards its bytes are compared, guard included. Thread: one at a time.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "bench_verbs/point.h"
#include "bench_verbs/verbs.h"

namespace egret::bench_verbs {

struct Shape {
  uint32_t queue_pairs = 1;
  uint32_t max_size = 0;
  uint32_t depth = 1;  // slots of a queue pair
  uint32_t lead = kRequestBytes;
  uint32_t guard = 64;

  static constexpr size_t kAlignment = 64;
  size_t slot_bytes() const { return (size_t{lead} + max_size + guard + kAlignment - 1) / kAlignment * kAlignment; }
  size_t bytes() const { return slot_bytes() * depth * queue_pairs; }
  size_t slot(uint32_t pair, uint32_t slot) const { return (size_t{pair} * depth + slot) * slot_bytes(); }
};

class Slots {
 public:
  // `atomics`: the other side may do them in the target, which only a device that has them allows.
  base::Status create(ibv_pd* domain, const Shape& shape, bool atomics);

  // The target's side of a point: before it; and wrong bytes after it, but for datagrams, which their receivers check.
  void prepare(const Point& point);
  uint64_t check(const Point& point) const;
  // Of a point of atomics: how much all its words have grown.
  uint64_t increments(const Point& point) const;

  const Shape& shape() const { return shape_; }
  const Memory& local() const { return local_; }
  const Memory& target() const { return target_; }
  std::byte* local_slot(uint32_t pair, uint32_t slot) const { return local_.data() + shape_.slot(pair, slot); }
  std::byte* target_slot(uint32_t pair, uint32_t slot) const { return target_.data() + shape_.slot(pair, slot); }
  void set_peer(uint64_t address, uint32_t key) {
    peer_address_ = address;
    peer_key_ = key;
  }
  uint64_t peer_address(uint32_t pair, uint32_t slot) const { return peer_address_ + shape_.slot(pair, slot); }
  uint32_t peer_key() const { return peer_key_; }

 private:
  uint64_t wrong_now(const Point& point) const;

  Memory local_, target_;
  Shape shape_;
  uint64_t peer_address_ = 0;
  uint32_t peer_key_ = 0;
};

// The pattern of a slot, and how many of `bytes` bytes at `at` are not it.
void fill_pattern(std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot);
uint64_t wrong_bytes(const std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot);
// Poison: what is nowhere in a pattern's place by chance, and how many bytes are not it.
void poison(std::byte* at, size_t bytes);
uint64_t unpoisoned_bytes(const std::byte* at, size_t bytes);

// The word that an atomic finds first in a slot.
uint64_t first_word(uint32_t point, uint32_t pair, uint32_t slot);
uint64_t load_word(const std::byte* at);

// What atomics have answered, in which order of bytes: that of the first answer. Devices there are that answer
// big-endian (Connect-IB); one that changes its mind is wrong.
class AtomicAnswers {
 public:
  // Whether `answer` is `expected`.
  bool take(uint64_t answer, uint64_t expected);
  bool are_big_endian() const { return order_ == Order::kBig; }

 private:
  enum class Order : uint8_t { kUnknown, kLittle, kBig };
  Order order_ = Order::kUnknown;
};

}  // namespace egret::bench_verbs
