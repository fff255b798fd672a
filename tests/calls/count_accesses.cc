// libegret_count_accesses.so: counts the cache lines that threads of a program take from each other, and their atomic
// operations. gcc's -fsanitize=thread calls a function at each access to memory; this library defines these functions, in
// place of ThreadSanitizer's.
//
//   the program ─ __tsan_read8(address), __tsan_atomic64_store(…) ─▶ the line's last writer, and who has read it since
//                                                                    └─▶ "lines": it must come from another thread's cache
//
//   lines    a thread reads what another one wrote last, or writes what others have written or read since it last wrote it:
//            if every thread runs on a CPU of its own, the line crosses from one cache to another
//   atomics  operations that lock a line, or wait for earlier stores: read-modify-write, sequentially consistent stores and fences
//
// The counters' file: counter_file.h. What libraries do that are compiled otherwise is not seen, but for the bytes that they copy,
// move and set by libc's functions. Lines are told apart by 24 bits of their number. Threads: any, 47 at most.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <sys/mman.h>
#include <unistd.h>

#include "../before_libc.h"
#include "counter_file.h"

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLines = size_t{1} << 24;
constexpr unsigned kReaders = 48;  // bits of a line's state; the writer's number is above them
constexpr uint64_t kReaderBits = (uint64_t{1} << kReaders) - 1;

using State = std::atomic<uint64_t>;

[[noreturn]] void end_process(const char* why) {
  std::fprintf(stderr, "libegret_count_accesses: %s\n", why);
  ::_exit(70);
}

State* lines() {
  static State* const mapped = [] {
    void* const memory = ::mmap(nullptr, kLines * sizeof(State), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) end_process("no memory for the lines' states");
    return static_cast<State*>(memory);
  }();
  return mapped;
}

// The calling thread's number, from 1. A line's writer of 0 means: none yet.
uint64_t thread_number() {
  static std::atomic<uint64_t> threads{0};
  static thread_local uint64_t number = 0;
  if (number == 0) number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number == kReaders) end_process("too many threads");
  return number;
}

void count_line() {
  static std::atomic<uint64_t>* const counter = egret::calls::new_counter("lines");
  counter->fetch_add(1, std::memory_order_relaxed);
}

void count_atomic() {
  static std::atomic<uint64_t>* const counter = egret::calls::new_counter("atomics");
  counter->fetch_add(1, std::memory_order_relaxed);
}

void touch(uintptr_t line, bool is_write) {
  State& state = lines()[line % kLines];
  const uint64_t own = thread_number(), own_bit = uint64_t{1} << own;
  uint64_t seen = state.load(std::memory_order_relaxed);
  uint64_t next = 0;
  bool must_come = false;
  do {
    const uint64_t writer = seen >> kReaders, readers = seen & kReaderBits;
    if (is_write) {
      must_come = (writer != own && writer != 0) || (readers & ~own_bit) != 0;
      next = own << kReaders | own_bit;
    } else {
      must_come = writer != own && writer != 0 && (readers & own_bit) == 0;
      next = seen | own_bit;
    }
    if (next == seen) break;
  } while (!state.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  if (must_come) count_line();
}

void access(const volatile void* at, size_t bytes, bool is_write) {
  if (bytes == 0) return;
  const auto first = reinterpret_cast<uintptr_t>(at) / kLineBytes;
  const auto last = (reinterpret_cast<uintptr_t>(at) + bytes - 1) / kLineBytes;
  for (uintptr_t line = first; line <= last; ++line) touch(line, is_write);
}

constexpr bool waits_for_stores(int order) {
  return order == __ATOMIC_SEQ_CST;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): names are gcc's; what is not in parentheses are types
EGRET_EXPORT void __tsan_init() {}
EGRET_EXPORT void __tsan_func_entry(void* /*caller*/) {}
EGRET_EXPORT void __tsan_func_exit() {}
EGRET_EXPORT void __tsan_vptr_update(void** at, void* /*table*/) {
  access(at, sizeof *at, true);
}
EGRET_EXPORT void __tsan_read_range(void* at, size_t bytes) {
  access(at, bytes, false);
}
EGRET_EXPORT void __tsan_write_range(void* at, size_t bytes) {
  access(at, bytes, true);
}

#define EGRET_PLAIN(bytes)                                    \
  EGRET_EXPORT void __tsan_read##bytes(void* at) {            \
    access(at, bytes, false);                                 \
  }                                                           \
  EGRET_EXPORT void __tsan_write##bytes(void* at) {           \
    access(at, bytes, true);                                  \
  }                                                           \
  EGRET_EXPORT void __tsan_unaligned_read##bytes(void* at) {  \
    access(at, bytes, false);                                 \
  }                                                           \
  EGRET_EXPORT void __tsan_unaligned_write##bytes(void* at) { \
    access(at, bytes, true);                                  \
  }
EGRET_PLAIN(1)
EGRET_PLAIN(2)
EGRET_PLAIN(4)
EGRET_PLAIN(8)
EGRET_PLAIN(16)

// A read-modify-write of one kind: `operation` of gcc's own.
#define EGRET_CHANGE(bits, Word, name)                                                           \
  EGRET_EXPORT Word __tsan_atomic##bits##_##name(volatile Word* at, Word value, int /*order*/) { \
    access(at, sizeof *at, true);                                                                \
    count_atomic();                                                                              \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                         \
  }
#define EGRET_COMPARE(bits, Word, name)                                                                         \
  EGRET_EXPORT int __tsan_atomic##bits##_##name(volatile Word* at, Word* expected, Word value, int /*order*/,   \
                                                int /*if_not*/) {                                               \
    access(at, sizeof *at, true);                                                                               \
    count_atomic();                                                                                             \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0; \
  }
#define EGRET_ATOMIC(bits, Word)                                                                   \
  EGRET_EXPORT Word __tsan_atomic##bits##_load(const volatile Word* at, int /*order*/) {           \
    access(at, sizeof *at, false);                                                                 \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  EGRET_EXPORT void __tsan_atomic##bits##_store(volatile Word* at, Word value, int order) {        \
    access(at, sizeof *at, true);                                                                  \
    if (waits_for_stores(order)) count_atomic();                                                   \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                                \
  EGRET_CHANGE(bits, Word, fetch_add)                                                              \
  EGRET_CHANGE(bits, Word, fetch_sub)                                                              \
  EGRET_CHANGE(bits, Word, fetch_and)                                                              \
  EGRET_CHANGE(bits, Word, fetch_or)                                                               \
  EGRET_CHANGE(bits, Word, fetch_xor)                                                              \
  EGRET_EXPORT Word __tsan_atomic##bits##_exchange(volatile Word* at, Word value, int /*order*/) { \
    access(at, sizeof *at, true);                                                                  \
    count_atomic();                                                                                \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                                \
  EGRET_COMPARE(bits, Word, compare_exchange_strong)                                               \
  EGRET_COMPARE(bits, Word, compare_exchange_weak)
EGRET_ATOMIC(8, uint8_t)
EGRET_ATOMIC(16, uint16_t)
EGRET_ATOMIC(32, uint32_t)
EGRET_ATOMIC(64, uint64_t)

EGRET_EXPORT void __tsan_atomic_thread_fence(int order) {
  if (waits_for_stores(order)) count_atomic();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
EGRET_EXPORT void __tsan_atomic_signal_fence(int /*order*/) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

// --- what is copied, moved and set: libc's functions, whose place these take

EGRET_EXPORT void* memmove(void* to, const void* from, size_t bytes) noexcept {
  access(from, bytes, false);
  access(to, bytes, true);
  auto* const written = static_cast<volatile char*>(to);
  const auto* const source = static_cast<const volatile char*>(from);
  if (written <= source) {
    for (size_t i = 0; i < bytes; ++i) written[i] = source[i];
  } else {
    for (size_t i = bytes; i > 0; --i) written[i - 1] = source[i - 1];
  }
  return to;
}
EGRET_EXPORT void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  return memmove(to, from, bytes);
}
EGRET_EXPORT void* memset(void* to, int value, size_t bytes) noexcept {
  access(to, bytes, true);
  auto* const written = static_cast<volatile char*>(to);
  for (size_t i = 0; i < bytes; ++i) written[i] = static_cast<char>(value);
  return to;
}
