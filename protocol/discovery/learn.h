// The members of a pool as they are now, for programs that look once: --doctor, --where, --check-config.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "discovery/directory.h"

namespace egret::discovery {

struct Learned {
  std::vector<pool::Member> members;  // empty: none could be learned
  std::vector<std::string> problems;  // for people, a line each
};

// Blocks until each source has answered or failed, but no longer than `most`. Writes no copy of a file of members.
// `options`: entries that Directory::check_entries() accepts. Throws std::system_error if the system has no descriptors.
Learned learn_members(const DirectoryOptions& options, std::chrono::milliseconds most);

}  // namespace egret::discovery
