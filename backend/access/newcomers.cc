#include "access/newcomers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace egret::access {

std::optional<uint64_t> connection_to_end(std::span<const Newcomer> newcomers) {
  struct Crowd {
    size_t count = 0;
    uint64_t oldest = UINT64_MAX;
  };
  std::map<std::string_view, Crowd> crowds;
  for (const Newcomer& newcomer : newcomers) {
    Crowd& crowd = crowds[newcomer.peer];
    ++crowd.count;
    crowd.oldest = std::min(crowd.oldest, newcomer.connection);
  }
  // Among peers with equally many, the one whose oldest connection has waited longest.
  const auto rank = [](const auto& entry) { return std::pair(entry.second.count, UINT64_MAX - entry.second.oldest); };
  const auto largest = std::ranges::max_element(crowds, {}, rank);
  if (largest == crowds.end()) return {};
  const auto slow = static_cast<size_t>(std::ranges::count(newcomers, false, &Newcomer::waits_for_us));
  const bool too_many = largest->second.count > kMostNewcomersOfOnePeer || slow > kMostNewcomers;
  if (!too_many) return {};
  return largest->second.oldest;
}

}  // namespace egret::access
