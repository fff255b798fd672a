// The file in which libraries that are loaded into a program count, and from which a test reads (counted.py). In it rows: char
// name[24], u64 value, little-endian. The first has no name, and the number of the others; each of them is a counter. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::calls {

// A counter of that name in the file that EGRET_COUNT_CALLS names; "%p" in it becomes the process id. Without that variable it is
// nobody's. Lives as long as the process; the process ends with status 70 if the file cannot be written.
std::atomic<uint64_t>* new_counter(const char* name);

}  // namespace egret::calls
