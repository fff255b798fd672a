// The only functions that access bytes which a peer may be writing at the same moment: a request slot read by the
// server, a response slot read by the client. All other code works on private copies, or on memory whose first word had
// the expected seq (an honest peer does not write it after that).
//
// Ordering on one host: publish_word() is a release store and observe_word() an acquire load, so a reader that observes
// the word sees every byte stored before it was published. Over a network there is no such guarantee; the checksum over
// the whole message decides instead.
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

// Copies `length` bytes that a peer may be changing. The copy may be torn; the caller checks it.
inline void slot_copy(std::byte* to, const std::byte* from, size_t length) {
#ifdef EGRET_TSAN
  // These accesses race on purpose: for ThreadSanitizer they are relaxed atomics, byte by byte.
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = 0; i < length; ++i) to[i] = std::byte{__atomic_load_n(bytes + i, __ATOMIC_RELAXED)};
#else
  std::memcpy(to, from, length);
#endif
}

// The fence of Dekker's algorithm: each of two threads stores, fences, and loads what the other stores; at least one of
// them sees the other's store.
inline void full_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace egret::base
