// What is counted of a process's calls, and which of them are to fail, in a file that a test reads and changes while the
// process runs (failing_calls.py; the layout is here).
//
//   0    header  magic "EGRETFC1", u32 kinds of calls, u32 0, u64 seed (the test's), 40 bytes 0
//   64   kind    char name[24], u64 calls, u64 failed (the library's); u64 nth, u32 rate, 12 bytes 0 (the test's)
//
// nth: the call of that number fails, counted from 1 at the process's start; 0: none. rate: of 65536 calls, how many fail,
// drawn from the seed and the call's number; 65536: all. Little-endian; each value is changed whole. Thread-safe.
#pragma once

#include <cstdint>

namespace egret::exhaustion {

// The names are in call_file.cc.
enum class Call : uint32_t {
  kOpen,
  kSocket,
  kAccept,
  kMmap,
  kEpollCtl,
  kEpollCreate,
  kEventfd,
  kTimerfdCreate,
  kMemfdCreate,
  kPosixFallocate,
  kPipe,
  kAddSeals,
  kPthreadCreate,
  kEnd
};
inline constexpr auto kCalls = static_cast<uint32_t>(Call::kEnd);

// The number of this call among those of its kind, from 1.
uint64_t count_call(Call call);
// Asked once for each call. A call that must fail is counted as failed.
bool must_fail(Call call, uint64_t number);

}  // namespace egret::exhaustion
