// The file in which a preloaded library counts what a daemon does. A test (counted.py) reads it while the daemon runs.
//
//   row 0   no name; its value: how many rows follow
//   row n   a counter: char name[24], u64 value, little-endian
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::calls {

// A counter of that name in the file that EGRET_COUNT_CALLS names; "%p" in it becomes the process id. Without that variable it is
// nobody's. Lives as long as the process; the process ends with status 70 if the file cannot be written.
std::atomic<uint64_t>* new_counter(const char* name);

}  // namespace egret::calls
