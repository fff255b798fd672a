// The only functions that touch bytes which a peer may be writing at the same moment: a request slot as the server sees
// it, a response slot as the client sees it. Everything else works on private copies, or on memory whose first word has
// been seen to hold the expected seq (after which an honest peer leaves it alone).
//
// Ordering relied on: publish_word() is a release store, observe_word() an acquire load, so whoever observes the word
// also sees every byte stored before it was published. Across a network no such promise exists; there a checksum over
// the whole message decides.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#define EGRET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EGRET_TSAN 1
#endif
#endif

namespace egret::base {

// `at` must be 8-byte aligned.
inline uint64_t observe_word(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
}

inline void publish_word(std::byte* at, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(at), value, __ATOMIC_RELEASE);
}

// Copies `length` bytes that a peer may be changing; the copy may be torn, and is checked by whoever asked for it.
inline void slot_copy(std::byte* to, const std::byte* from, size_t length) {
#ifdef EGRET_TSAN
  // ThreadSanitizer is told that these accesses are meant to race: relaxed atomics, a byte at a time.
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = 0; i < length; ++i) to[i] = std::byte{__atomic_load_n(bytes + i, __ATOMIC_RELAXED)};
#else
  std::memcpy(to, from, length);
#endif
}

// Dekker's fence: of two sides that each store and then look at what the other stores, at least one sees the other's
// store.
inline void full_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace egret::base
