// How much memory this process may have: the host's, or less where a control group says so. Cold path; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace egret::base {

struct MemoryRoom {
  uint64_t bytes = 0;  // 0: it cannot be known
  std::string source;  // whose it is: "this host's" or "the control group's"
};

// `proc`, `cgroup`: where these are mounted; for tests.
MemoryRoom memory_room(const std::string& proc = "/proc", const std::string& cgroup = "/sys/fs/cgroup");

// How many mappings of memory a process may have (vm.max_map_count). 0: it cannot be known.
uint64_t most_mappings(const std::string& proc = "/proc");

// How many files this process may have open, if it raises its limit as far as it may.
uint64_t most_descriptors();

}  // namespace egret::base
