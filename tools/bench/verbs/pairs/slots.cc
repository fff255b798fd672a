#include "bench_verbs/pairs/slots.h"

#include <algorithm>
#include <cstring>

#include <time.h>

#include "bench/monotonic.h"

namespace egret::bench_verbs {

using base::Status;

namespace {

constexpr uint64_t kVisiblePatienceNs = bench::kNsPerSecond;
constexpr std::byte kPoison{0xee};

// splitmix64, so that neighbouring points, queue pairs and slots have nothing in common.
uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
uint64_t seed_of(uint32_t point, uint32_t pair, uint32_t slot) {
  return mixed(mixed(mixed(point) ^ pair) ^ slot);
}
std::byte pattern_byte(uint64_t seed, size_t i) {
  return static_cast<std::byte>(mixed(seed + i / 8) >> (i % 8 * 8));
}

}  // namespace

void fill_pattern(std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot) {
  const uint64_t seed = seed_of(point, pair, slot);
  for (size_t i = 0; i < bytes; ++i) at[i] = pattern_byte(seed, i);
}

uint64_t wrong_bytes(const std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot) {
  const uint64_t seed = seed_of(point, pair, slot);
  uint64_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += at[i] != pattern_byte(seed, i);
  return wrong;
}

void poison(std::byte* at, size_t bytes) {
  std::fill_n(at, bytes, kPoison);
}

uint64_t unpoisoned_bytes(const std::byte* at, size_t bytes) {
  return bytes - static_cast<uint64_t>(std::count(at, at + bytes, kPoison));
}

uint64_t load_word(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t first_word(uint32_t point, uint32_t pair, uint32_t slot) {
  std::byte bytes[kAtomicBytes];
  fill_pattern(bytes, sizeof bytes, point, pair, slot);
  return load_word(bytes);
}

bool AtomicAnswers::take(uint64_t answer, uint64_t expected) {
  const uint64_t swapped = __builtin_bswap64(answer);
  if (order_ == Order::kUnknown && answer != expected) order_ = swapped == expected ? Order::kBig : Order::kLittle;
  if (order_ == Order::kUnknown) order_ = Order::kLittle;
  return (order_ == Order::kBig ? swapped : answer) == expected;
}

Status Slots::create(ibv_pd* domain, const Shape& shape, bool atomics) {
  shape_ = shape;
  if (Status done = local_.create(domain, shape.bytes(), IBV_ACCESS_LOCAL_WRITE); !done) return done;
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (atomics) access |= IBV_ACCESS_REMOTE_ATOMIC;
  return target_.create(domain, shape.bytes(), access);
}

void Slots::prepare(const Point& point) {
  for (uint32_t pair = 0; pair < shape_.queue_pairs; ++pair) {
    for (uint32_t slot = 0; slot < shape_.depth; ++slot) {
      std::byte* const at = target_slot(pair, slot);
      poison(at, shape_.slot_bytes());
      const bool is_destination = point.kind == Kind::kWrite || point.kind == Kind::kSend;
      if (!is_destination) fill_pattern(at + shape_.lead, point.size, point.number, pair, slot);
    }
  }
}

uint64_t Slots::wrong_now(const Point& point) const {
  uint64_t wrong = 0;
  for (uint32_t pair = 0; pair < point.queue_pairs; ++pair) {
    for (uint32_t slot = 0; slot < point.depth; ++slot) {
      const std::byte* const at = target_slot(pair, slot);
      const std::byte* const payload = at + shape_.lead;
      if (point.kind == Kind::kFetch) {
        wrong += wrong_bytes(at, kRequestBytes, point.number, pair, slot);
      } else if (point.kind == Kind::kWrite || is_atomic(point.kind)) {
        wrong += unpoisoned_bytes(at, shape_.lead);
        wrong += unpoisoned_bytes(payload + point.size, shape_.guard);
        if (point.kind == Kind::kWrite) wrong += wrong_bytes(payload, point.size, point.number, pair, slot);
      }
    }
  }
  return wrong;
}

// What a WRITE has placed is visible at once, or so it should be; a moment of grace, since verbs promise no more than
// that the WRITE has arrived.
uint64_t Slots::check(const Point& point) const {
  const uint64_t deadline = bench::monotonic_ns() + kVisiblePatienceNs;
  for (;;) {
    const uint64_t wrong = wrong_now(point);
    if (wrong == 0 || bench::monotonic_ns() > deadline) return wrong;
    pause_briefly();
  }
}

uint64_t Slots::increments(const Point& point) const {
  uint64_t sum = 0;
  for (uint32_t pair = 0; pair < point.queue_pairs; ++pair) {
    for (uint32_t slot = 0; slot < point.depth; ++slot) {
      sum += load_word(target_slot(pair, slot) + shape_.lead) - first_word(point.number, pair, slot);
    }
  }
  return sum;
}

}  // namespace egret::bench_verbs
