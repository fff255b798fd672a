#include "bench_placement/measure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "bench/monotonic.h"

namespace egret::bench_placement {
namespace {

using pool::Member;
using pool::Placement;
using pool::PlacementRule;

constexpr std::array kRules{PlacementRule::kKetama, PlacementRule::kRendezvous};
constexpr size_t kTimedKeys = 4096;
constexpr int kTimings = 15;

std::vector<Member> equals(size_t count, uint32_t weight = 1) {
  std::vector<Member> members;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "10.0." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250) + ":11211";
    members.push_back({"rdma:" + name, name, weight});
  }
  return members;
}

// Calls `use` with each key.
template <class Use>
void for_each_key(size_t keys, Use use) {
  std::array<char, 32> text{'u', 's', 'e', 'r', ':'};
  constexpr size_t kPrefix = 5;
  for (size_t i = 0; i < keys; ++i) {
    const auto end = std::to_chars(text.data() + kPrefix, text.data() + text.size(), i).ptr;
    use(std::string_view(text.data(), static_cast<size_t>(end - text.data())));
  }
}

struct Pool {
  Pool(PlacementRule rule, std::vector<Member> its) : members(std::move(its)), placement(rule, members) {}
  std::vector<Member> members;
  Placement placement;
};

// The least that any rule can move, of all keys: what the members that grow gain. Shares are those of the weights.
double least_moved(const Pool& before, const Pool& after) {
  const auto total = [](const Pool& pool) {
    double sum = 0;
    for (const Member& member : pool.members) sum += member.weight;
    return sum;
  };
  double gained = 0;
  for (const Member& member : after.members) {
    const auto old = std::ranges::find(before.members, member.name, &Member::name);
    const double had = old == before.members.end() ? 0 : old->weight / total(before);
    gained += std::max(0.0, member.weight / total(after) - had);
  }
  return gained;
}

Moved moved(const Pool& before, const Pool& after, size_t keys) {
  // The index that a member of `before` has in `after`.
  std::vector<size_t> kept;
  for (const Member& member : before.members) {
    const auto now = std::ranges::find(after.members, member.name, &Member::name);
    kept.push_back(static_cast<size_t>(now - after.members.begin()));
  }
  size_t count = 0;
  for_each_key(keys, [&](std::string_view key) {
    count += after.placement.member_of(key) != kept[before.placement.member_of(key)] ? 1 : 0;
  });
  return {static_cast<double>(count) / static_cast<double>(keys), least_moved(before, after)};
}

// The median of some timings of the same keys.
double ns_per_key(const Placement& placement) {
  std::vector<std::string> keys;
  for_each_key(kTimedKeys, [&](std::string_view key) { keys.emplace_back(key); });
  std::array<double, kTimings> timings{};
  size_t sum = 0;
  for (double& timing : timings) {
    const uint64_t start = bench::monotonic_ns();
    for (const std::string& key : keys) sum += placement.member_of(key);
    timing = static_cast<double>(bench::monotonic_ns() - start) / kTimedKeys;
  }
  asm volatile("" : : "g"(sum));  // the look-ups count as used
  std::ranges::sort(timings);
  return timings[kTimings / 2];
}

Row measure_row(PlacementRule rule, size_t size, size_t keys) {
  const Pool pool(rule, equals(size));
  Row row;
  row.rule = rule;
  row.members = size;
  std::vector<size_t> counts(size);
  for_each_key(keys, [&](std::string_view key) { ++counts[pool.placement.member_of(key)]; });
  const double mean = static_cast<double>(keys) / static_cast<double>(size);
  row.most = static_cast<double>(std::ranges::max(counts)) / mean;
  row.fewest = static_cast<double>(std::ranges::min(counts)) / mean;
  row.added = moved(pool, Pool(rule, equals(size + 1)), keys);
  std::vector<Member> fewer = pool.members;
  fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(size / 2));
  row.removed = moved(pool, Pool(rule, std::move(fewer)), keys);
  row.ns_per_key = ns_per_key(pool.placement);
  return row;
}

void measure_changes(size_t keys, std::vector<Change>& changes) {
  const std::vector<Member> ten = equals(10, 10);
  std::vector<Member> eleven = equals(11, 10);
  eleven.back().weight = 1;
  std::vector<Member> heavier = ten;
  heavier[4].weight = 20;
  for (const PlacementRule rule : kRules) {
    const Pool before(rule, ten);
    changes.push_back({"ten of weight 10, one of weight 1 added", rule, moved(before, Pool(rule, eleven), keys)});
    changes.push_back({"ten of weight 10, one raised to 20", rule, moved(before, Pool(rule, heavier), keys)});
  }
}

}  // namespace

Outcome measure(const MeasureOptions& options, const std::atomic<bool>& stop) {
  Outcome outcome;
  for (const size_t size : options.sizes) {
    for (const PlacementRule rule : kRules) {
      if (stop.load()) return outcome;
      outcome.rows.push_back(measure_row(rule, size, options.keys));
    }
  }
  measure_changes(options.keys, outcome.changes);
  return outcome;
}

}  // namespace egret::bench_placement
