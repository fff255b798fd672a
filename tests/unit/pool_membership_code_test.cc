// The bytes of a membership: what they say, and that nothing else is taken for them.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "pool/membership_code.h"

using namespace egret::pool;

namespace {
std::vector<Member> members_of(size_t count) {
  std::vector<Member> members;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":7000";
    members.push_back({"rdma:" + name, name, static_cast<uint32_t>(i % 3 + 1)});
  }
  return members;
}
}  // namespace

TEST_CASE("a membership comes back with the same owners of all keys, by both rules") {
  for (const PlacementRule rule : {PlacementRule::kKetama, PlacementRule::kRendezvous}) {
    for (const size_t count : {1, 2, 7, 300, 1024}) {
      const std::vector<Member> members = members_of(count);
      const Placement placement(rule, members);
      for (const size_t mine : {size_t{0}, count / 2, count - 1}) {
        const auto seen = decode_membership(encode_membership(rule, members, mine));
        REQUIRE_MESSAGE(seen.is_ok(), seen.message());
        size_t wrong = 0;
        for (int i = 0; i < 1000; ++i) {
          const std::string key = "user:" + std::to_string(i);
          const bool is_mine = placement.member_of(key) == mine;
          if (is_mine != (seen.value().placement.member_of(key) == seen.value().mine)) ++wrong;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("the order of the members makes no difference; anything else does") {
  const std::vector<Member> members = members_of(5);
  std::vector<Member> turned = members;
  std::ranges::reverse(turned);
  const auto number = [](const std::string& bytes) { return number_of_membership(bytes); };
  const std::string bytes = encode_membership(PlacementRule::kKetama, members, 1);
  CHECK(encode_membership(PlacementRule::kKetama, turned, 3) == bytes);
  CHECK(number(bytes) != 0);
  CHECK(number(bytes) != number(encode_membership(PlacementRule::kRendezvous, members, 1)));
  CHECK(number(bytes) != number(encode_membership(PlacementRule::kKetama, members, 2)));
  CHECK(number(bytes) != number(encode_membership(PlacementRule::kKetama, members, kNoMember)));
  std::vector<Member> heavier = members;
  heavier[0].weight += 1;
  CHECK(number(bytes) != number(encode_membership(PlacementRule::kKetama, heavier, 1)));
  std::vector<Member> elsewhere = members;
  elsewhere[0].address = "rdma:elsewhere:1";
  CHECK_MESSAGE(encode_membership(PlacementRule::kKetama, elsewhere, 1) == bytes, "placement is by name");
}

TEST_CASE("who is none of the members is said") {
  const auto seen = decode_membership(encode_membership(PlacementRule::kKetama, members_of(3), kNoMember));
  REQUIRE(seen.is_ok());
  CHECK(seen.value().mine == kNoMember);
}

TEST_CASE("what is cut, goes on, or says what cannot be is refused") {
  const std::string good = encode_membership(PlacementRule::kKetama, members_of(3), 1);
  REQUIRE(decode_membership(good).is_ok());
  for (size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(decode_membership(good.substr(0, length)).is_ok());
  CHECK_FALSE(decode_membership(good + "x").is_ok());
  const auto with = [&](size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    return decode_membership(bad).is_ok();
  };
  CHECK_FALSE_MESSAGE(with(0, 2), "a rule");
  CHECK_FALSE_MESSAGE(with(1, 1), "reserved");
  CHECK_FALSE_MESSAGE(with(2, 3), "which member");
  CHECK_FALSE_MESSAGE(with(4, 0), "no members");
  CHECK_FALSE_MESSAGE(with(4, 4), "more members");
  CHECK_FALSE_MESSAGE(with(6, 0), "weight 0");
  CHECK_FALSE_MESSAGE(with(7, 127), "a weight too high");
  CHECK_FALSE_MESSAGE(with(8, 0), "no name");
  std::vector<Member> twins = members_of(2);
  twins[1].name = twins[0].name;
  CHECK_FALSE(decode_membership(encode_membership(PlacementRule::kKetama, twins, 0)).is_ok());
}
