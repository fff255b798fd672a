#include "access/newcomers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace egret::access {

namespace {

// The peer with most of them; among peers with equally many, the one whose oldest connection has waited longest.
struct Crowd {
  size_t count = 0;
  uint64_t oldest = UINT64_MAX;
};
Crowd largest_of(std::span<const Newcomer> newcomers) {
  std::map<std::string_view, Crowd> crowds;
  for (const Newcomer& newcomer : newcomers) {
    Crowd& crowd = crowds[newcomer.peer];
    ++crowd.count;
    crowd.oldest = std::min(crowd.oldest, newcomer.connection);
  }
  const auto rank = [](const auto& entry) { return std::pair(entry.second.count, UINT64_MAX - entry.second.oldest); };
  const auto largest = std::ranges::max_element(crowds, {}, rank);
  return largest == crowds.end() ? Crowd() : largest->second;
}

bool are_too_many(std::span<const Newcomer> newcomers, const Crowd& largest, size_t further) {
  const auto slow = static_cast<size_t>(std::ranges::count(newcomers, false, &Newcomer::waits_for_us));
  return largest.count + further > kMostNewcomersOfOnePeer || slow + further > kMostNewcomers;
}

}  // namespace

std::optional<uint64_t> connection_to_end(std::span<const Newcomer> newcomers) {
  const Crowd largest = largest_of(newcomers);
  if (!are_too_many(newcomers, largest, 0)) return {};
  return largest.oldest;
}

bool should_wait(std::span<const Newcomer> newcomers) {
  if (newcomers.size() < kMostNewcomersOfOnePeer) return false;
  const Crowd largest = largest_of(newcomers);
  if (!are_too_many(newcomers, largest, 1)) return false;
  return std::ranges::find(newcomers, largest.oldest, &Newcomer::connection)->is_young;
}

}  // namespace egret::access
