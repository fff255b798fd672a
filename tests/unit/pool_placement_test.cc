// Placement by both rules: who owns a key, who would own it next, which keys a change moves, and how many each member has.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "pool/placement.h"

using namespace egret::pool;

namespace {

constexpr std::array kRules{PlacementRule::kKetama, PlacementRule::kRendezvous};

std::string key_of(size_t number) {
  return "user:" + std::to_string(number);
}

Member member(const std::string& name, uint32_t weight = 1) {
  return {"rdma:" + name, name, weight};
}

// Equal members "10.0.0.1:7000", "10.0.0.2:7000", ...
std::vector<Member> equals(size_t count) {
  std::vector<Member> members;
  for (size_t i = 1; i <= count; ++i) {
    members.push_back(member("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ":7000"));
  }
  return members;
}

std::vector<Member> without(std::vector<Member> members, size_t index) {
  members.erase(members.begin() + static_cast<ptrdiff_t>(index));
  return members;
}

struct Pool {
  Pool(PlacementRule rule, std::vector<Member> its) : members(std::move(its)), placement(rule, members) {}

  const std::string& owner(const std::string& key) const { return members[placement.member_of(key)].name; }
  // The names in the order of failover, at most `most`.
  std::vector<std::string> order(const std::string& key, size_t most) const {
    std::vector<uint32_t> numbers(most);
    numbers.resize(placement.order_of(key, numbers));
    std::vector<std::string> names;
    for (const uint32_t number : numbers) names.push_back(members[number].name);
    return names;
  }

  std::vector<Member> members;
  Placement placement;
};

// How many of this many keys each member owns.
std::vector<double> counts_of(const Placement& placement, size_t keys) {
  std::vector<double> counts(placement.size());
  for (size_t i = 0; i < keys; ++i) ++counts[placement.member_of(key_of(i))];
  return counts;
}

// One digit for each of key0, key1, ...: the number of its member.
std::string digits(PlacementRule rule, const std::vector<Member>& members) {
  const Placement placement(rule, members);
  std::string digits;
  for (int i = 0; i < 60; ++i) digits += static_cast<char>('0' + placement.member_of("key" + std::to_string(i)));
  return digits;
}

// The difference from what is expected, in standard deviations of a fair choice, of the member that is farthest off.
double farthest(const std::vector<double>& counts, const Placement& placement, size_t keys) {
  double farthest = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double share = placement.share_of(i);
    const double mean = share * static_cast<double>(keys);
    farthest = std::max(farthest, std::abs(counts[i] - mean) / std::sqrt(mean * (1 - share)));
  }
  return farthest;
}

}  // namespace

// An upgrade must not move a key: these never change.
TEST_CASE("keys stay where they are for ever") {
  const std::vector<Member> weighted{member("a", 1), member("b", 2), member("c:7000", 5), member("::1:7000", 1)};
  CHECK(digits(PlacementRule::kKetama, equals(9)) == "862476583255067474022617856672727004580726778077648057881421");
  CHECK(digits(PlacementRule::kKetama, weighted) == "221220232111312212222122232312201332222222202222112222322231");
  CHECK(digits(PlacementRule::kRendezvous, equals(3)) ==
        "210111210121101010221210201011120201222020012221021011202201");
  CHECK(digits(PlacementRule::kRendezvous, equals(9)) ==
        "270161668681704016521373755811160766242377717884751047272577");
  CHECK(digits(PlacementRule::kRendezvous, weighted) == "221221210322220221223322020232112222222223122222112221112203");
}

TEST_CASE("keys of a large pool stay where they are for ever") {
  const Placement placement(PlacementRule::kRendezvous, equals(1000));
  std::string owners;
  for (size_t i = 0; i < 12; ++i) owners += std::to_string(placement.member_of(key_of(i))) + " ";
  CHECK(owners == "831 273 11 495 995 414 508 737 803 0 248 575 ");
}

TEST_CASE("ketama is the ring that libmemcached has") {
  std::vector<Member> members = equals(20);
  for (size_t i = 0; i < members.size(); ++i) members[i].weight = static_cast<uint32_t>(1 + i % 4);
  std::vector<KetamaServer> servers;
  for (const Member& each : members) servers.push_back({each.name, each.weight});
  const KetamaRing ring(servers);
  const Placement placement(PlacementRule::kKetama, members);
  for (size_t i = 0; i < 10'000; ++i) REQUIRE(placement.member_of(key_of(i)) == ring.server_of(key_of(i)));
}

// The oracle is the definition, in floating point: wherever it decides beyond rounding, it agrees.
TEST_CASE("rendezvous gives a key to the member with the least -log2(draw) / weight") {
  std::vector<Member> members = equals(37);
  for (size_t i = 0; i < members.size(); ++i) members[i].weight = static_cast<uint32_t>(1 + i * i % 50);
  const Rendezvous rendezvous(members);
  int close = 0;
  for (size_t i = 0; i < 5'000; ++i) {
    const std::string key = key_of(i);
    std::vector<std::pair<double, size_t>> scores;
    for (size_t n = 0; n < members.size(); ++n) {
      const double draw = (rendezvous.draw_of(key, n) + 1.0) / 4294967296.0;
      scores.emplace_back(-std::log2(draw) / members[n].weight, n);
    }
    std::ranges::sort(scores);
    const bool is_close = scores[1].first < scores[0].first * 1.001;
    close += is_close ? 1 : 0;
    if (!is_close) REQUIRE(rendezvous.member_of(key) == scores[0].second);
  }
  CHECK(close < 50);
}

TEST_CASE("a pool of one has every key, and one of none can be made") {
  for (const PlacementRule rule : kRules) {
    const Pool alone(rule, {member("alone", 7)});
    CHECK(alone.owner("x") == "alone");
    CHECK(alone.order("x", 5) == std::vector<std::string>{"alone"});
    CHECK(alone.placement.share_of(0) == 1);
    CHECK(alone.placement.rule() == rule);
    const Placement none(rule, {});
    CHECK(none.size() == 0);
    std::array<uint32_t, 3> out{};
    CHECK(none.order_of("x", out) == 0);
  }
}

TEST_CASE("neither the order of the list nor the addresses nor the default port decide") {
  for (const PlacementRule rule : kRules) {
    std::vector<Member> members{member("a:11211", 1), member("b:11211", 2), member("c:7000", 2), member("d:7000", 3)};
    const Pool pool(rule, members);
    std::ranges::reverse(members);
    for (Member& each : members) each.address = "shm:/run/" + each.name;
    const Pool turned(rule, members);
    for (Member& each : members) each.name = std::string(ketama_name(each.name));
    const Pool without_port(rule, members);
    for (size_t i = 0; i < 2'000; ++i) {
      REQUIRE(turned.owner(key_of(i)) == pool.owner(key_of(i)));
      REQUIRE(without_port.owner(key_of(i)) == ketama_name(pool.owner(key_of(i))));
    }
  }
}

TEST_CASE("shares add up to 1, and keys are spread by them") {
  for (const PlacementRule rule : kRules) {
    for (const size_t size : {2, 3, 8, 9, 17, 100}) {
      for (const bool is_weighted : {false, true}) {
        std::vector<Member> members = equals(size);
        for (size_t i = 0; is_weighted && i < size; ++i) members[i].weight = static_cast<uint32_t>(1 + i % 7);
        CAPTURE(to_string(rule));
        CAPTURE(size);
        CAPTURE(is_weighted);
        const Placement placement(rule, members);
        double sum = 0;
        for (size_t i = 0; i < size; ++i) sum += placement.share_of(i);
        CHECK(sum == doctest::Approx(1).epsilon(1e-9));
        constexpr size_t kKeys = 200'000;
        CHECK(farthest(counts_of(placement, kKeys), placement, kKeys) < 4.5);
      }
    }
  }
}

TEST_CASE("rendezvous: a share is the weight's, however large the weights") {
  const std::vector<Member> members{member("a", 1), member("b", 10), member("c", 1000), member("d", 989)};
  const Placement placement(PlacementRule::kRendezvous, members);
  CHECK(placement.share_of(0) == doctest::Approx(0.0005));
  CHECK(placement.share_of(2) == doctest::Approx(0.5));
  constexpr size_t kKeys = 1'000'000;
  CHECK(farthest(counts_of(placement, kKeys), placement, kKeys) < 4);
}

TEST_CASE("ketama: a weight far below the others' has no share, and is in no order") {
  const Pool pool(PlacementRule::kKetama, {member("light", 1), member("heavy", 1000)});
  CHECK(pool.placement.share_of(0) == 0);
  CHECK(pool.placement.share_of(1) == 1);
  CHECK(pool.order("x", 2) == std::vector<std::string>{"heavy"});
}

TEST_CASE("a member more takes keys from the others, and no other key moves") {
  for (const PlacementRule rule : kRules) {
    for (const size_t size : {1, 2, 7, 8, 9, 10, 30}) {
      const Pool before(rule, equals(size));
      const Pool after(rule, equals(size + 1));
      size_t moved = 0;
      for (size_t i = 0; i < 10'000; ++i) {
        const std::string& now = after.owner(key_of(i));
        if (now == before.owner(key_of(i))) continue;
        REQUIRE(now == after.members.back().name);
        ++moved;
      }
      const double least = after.placement.share_of(size) * 10'000;
      CHECK(std::abs(static_cast<double>(moved) - least) < 5 * std::sqrt(least));
    }
  }
}

TEST_CASE("rendezvous: a change of one weight moves keys only to that member or only from it") {
  const std::vector<Member> members{member("a", 3), member("b", 3), member("c", 5), member("d", 8), member("e", 3)};
  const Pool before(PlacementRule::kRendezvous, members);
  for (size_t changed = 0; changed < members.size(); ++changed) {
    for (const uint32_t weight : {1U, 2U, 4U, 5U, 9U, 1000U}) {
      std::vector<Member> others = members;
      others[changed].weight = weight;
      const Pool after(PlacementRule::kRendezvous, others);
      const bool is_more = weight > members[changed].weight;
      size_t moved = 0;
      for (size_t i = 0; i < 2'000; ++i) {
        const std::string key = key_of(i);
        if (after.owner(key) == before.owner(key)) continue;
        REQUIRE((is_more ? after : before).owner(key) == members[changed].name);
        ++moved;
      }
      CHECK((moved > 0 || weight == members[changed].weight));
    }
  }
}

TEST_CASE("the order of failover begins with the owner and names each member once") {
  for (const PlacementRule rule : kRules) {
    for (const size_t size : {2, 5, 8, 12, 100}) {
      std::vector<Member> members = equals(size);
      for (size_t i = 0; i < size; ++i) members[i].weight = static_cast<uint32_t>(4 + i % 3);
      const Pool pool(rule, members);
      for (size_t i = 0; i < 200; ++i) {
        const std::string key = key_of(i);
        const std::vector<std::string> whole = pool.order(key, size + 3);
        REQUIRE(whole.size() == size);
        REQUIRE(whole.front() == pool.owner(key));
        const std::vector<std::string> begin = pool.order(key, 2);
        REQUIRE(std::equal(begin.begin(), begin.end(), whole.begin()));
        std::vector<std::string> sorted = whole;
        std::ranges::sort(sorted);
        REQUIRE(std::ranges::adjacent_find(sorted) == sorted.end());
      }
    }
  }
}

// Of ketama with sizes at which nobody's number of points changes: 160 for each.
TEST_CASE("the next in the order owns the key if the owner is taken out, and so on") {
  for (const PlacementRule rule : kRules) {
    for (const size_t size : {3, 4, 9, 16}) {
      const Pool pool(rule, equals(size));
      for (size_t i = 0; i < 200; ++i) {
        const std::string key = key_of(i);
        std::vector<Member> left = pool.members;
        for (const std::string& name : pool.order(key, size)) {
          REQUIRE(Pool(rule, left).owner(key) == name);
          left.erase(std::ranges::find(left, name, &Member::name));
        }
      }
    }
  }
}

TEST_CASE("rendezvous: the order holds with weights, too") {
  const Pool pool(PlacementRule::kRendezvous, {member("a", 1), member("b", 7), member("c", 7), member("d", 30)});
  for (size_t i = 0; i < 1'000; ++i) {
    const std::string key = key_of(i);
    std::vector<Member> left = pool.members;
    for (const std::string& name : pool.order(key, 4)) {
      REQUIRE(Pool(PlacementRule::kRendezvous, left).owner(key) == name);
      left.erase(std::ranges::find(left, name, &Member::name));
    }
  }
}

TEST_CASE("rendezvous: the keys of a member that is gone are spread over all others") {
  const Pool pool(PlacementRule::kRendezvous, equals(20));
  std::map<std::string, double> takers;
  double keys = 0;
  for (size_t i = 0; i < 200'000; ++i) {
    const std::vector<std::string> order = pool.order(key_of(i), 2);
    if (order[0] != pool.members[4].name) continue;
    ++takers[order[1]];
    ++keys;
  }
  CHECK(takers.size() == 19);
  for (const auto& [name, taken] : takers) CHECK(std::abs(taken - keys / 19) < 4 * std::sqrt(keys / 19));
}

TEST_CASE("a pool of the largest size") {
  for (const PlacementRule rule : kRules) {
    const Pool pool(rule, equals(kMaxMembers));
    for (size_t i = 0; i < 4; ++i) {
      const std::vector<std::string> order = pool.order(key_of(i), kMaxMembers);
      REQUIRE(order.size() == kMaxMembers);
      REQUIRE(order[0] == pool.owner(key_of(i)));
      REQUIRE(order[1] == Pool(rule, without(pool.members, pool.placement.member_of(key_of(i)))).owner(key_of(i)));
    }
  }
}

TEST_CASE("people are told how a key came to its owner") {
  CHECK(Placement(PlacementRule::kKetama, equals(3)).why("key") ==
        "its hash 0x8a0b6e3c is followed by the point 0x8a605e42 of the ring");
  CHECK(Placement(PlacementRule::kRendezvous, equals(3)).why("key") ==
        "its hash 0xf42105f2 gives the draw 0x628c081f, the best for the weights of 3 members");
  CHECK(Placement(PlacementRule::kRendezvous, equals(1)).why("key") == "it is the only member");
  CHECK(Placement().why("key") == "the pool has no members");
}
