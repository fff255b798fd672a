#include "base/service/memory_room.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include <sys/resource.h>

namespace egret::base {

namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kNoLimitOfV1 = uint64_t{1} << 60;  // what version 1 says when it limits nothing is more than this

// The number that the file holds; kNone: it is not there, or says "max".
uint64_t number_in(const std::string& path) {
  uint64_t number = kNone;
  std::ifstream file(path);
  return file >> number ? number : kNone;
}

uint64_t total_of_host(const std::string& proc) {
  std::ifstream file(proc + "/meminfo");
  std::string name;
  uint64_t kib = 0;
  while (file >> name) {
    if (name == "MemTotal:") return file >> kib ? kib * 1024 : 0;
  }
  return 0;
}

// The least limit of the group at `path` below `root`, and of those above it.
uint64_t least_limit(const std::string& root, std::string path, const std::string& file) {
  uint64_t least = kNone;
  while (true) {
    std::string at = root;
    at.append(path).append("/").append(file);
    least = std::min(least, number_in(at));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.erase(slash);
  }
}

uint64_t limit_of_groups(const std::string& proc, const std::string& cgroup) {
  // Each line: number, controllers, path, with colons between. Version 2 has no controllers. In a container the path may be
  // that of another namespace, and be missing below `cgroup`: then the limits above it are found, the root's included.
  std::ifstream groups(proc + "/self/cgroup");
  uint64_t least = kNone;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_limit(cgroup, path, "memory.max"));
    if (controllers == "memory") {
      const uint64_t limit = least_limit(cgroup + "/memory", path, "memory.limit_in_bytes");
      if (limit < kNoLimitOfV1) least = std::min(least, limit);
    }
  }
  return least;
}

}  // namespace

MemoryRoom memory_room(const std::string& proc, const std::string& cgroup) {
  const uint64_t total = total_of_host(proc);
  const uint64_t limit = limit_of_groups(proc, cgroup);
  if (limit != kNone && (total == 0 || limit < total)) return {limit, "the control group's"};
  return {total, "this host's"};
}

uint64_t most_mappings(const std::string& proc) {
  const uint64_t most = number_in(proc + "/sys/vm/max_map_count");
  return most == kNone ? 0 : most;
}

uint64_t most_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_max == RLIM_INFINITY ? kNone : limit.rlim_max;
}

}  // namespace egret::base
