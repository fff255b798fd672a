// What is remembered of changed keys while fills are taken: never too little.
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "changes/effect.h"
#include "changes/tombstones.h"

using namespace egret::backend;
namespace op = egret::op;

namespace {
constexpr uint64_t kMemory = 64u << 20;
constexpr uint64_t kMinute = 60'000'000'000;

std::mt19937_64 random_numbers(17);
}  // namespace

TEST_CASE("without a phase no fill is allowed and nothing is held") {
  Tombstones tombstones(kMemory);
  CHECK_FALSE(tombstones.is_recording());
  CHECK_FALSE(tombstones.allows_fill("", 1, 0));
  CHECK(tombstones.bytes() == 0);
  CHECK(tombstones.due_ns() == UINT64_MAX);
}

TEST_CASE("of what was added every fill is refused, of what was not nearly none") {
  Tombstones tombstones(kMemory);
  REQUIRE(tombstones.open(kMinute));
  CHECK(tombstones.bytes() == kMemory / 128);
  std::vector<uint64_t> added;
  for (int i = 0; i < 100'000; ++i) added.push_back(random_numbers());
  for (const uint64_t hash : added) tombstones.add(hash);
  size_t allowed = 0;
  for (const uint64_t hash : added) allowed += tombstones.allows_fill("", hash, 1) ? 1 : 0;
  CHECK(allowed == 0);
  size_t refused = 0;
  for (int i = 0; i < 100'000; ++i) refused += tombstones.allows_fill("", random_numbers(), 1) ? 0 : 1;
  CHECK(refused < 1'000);
}

TEST_CASE("hashes of one partition, which share their high bits, do not share their places") {
  Tombstones tombstones(kMemory);
  REQUIRE(tombstones.open(kMinute));
  for (uint64_t i = 0; i < 50'000; ++i) tombstones.add(uint64_t{7} << 61 | (random_numbers() >> 3));
  size_t refused = 0;
  for (int i = 0; i < 50'000; ++i)
    refused += tombstones.allows_fill("", uint64_t{7} << 61 | (random_numbers() >> 3), 1) ? 0 : 1;
  CHECK(refused < 500);
}

TEST_CASE("however much changes, memory stays, and only more is refused") {
  Tombstones tombstones(1u << 20);
  REQUIRE(tombstones.open(kMinute));
  CHECK(tombstones.bytes() == 64u << 10);
  std::vector<uint64_t> added;
  for (int i = 0; i < 1'000'000; ++i) tombstones.add(added.emplace_back(random_numbers()));
  CHECK(tombstones.bytes() == 64u << 10);
  size_t allowed = 0;
  for (const uint64_t hash : added) allowed += tombstones.allows_fill("", hash, 1) ? 1 : 0;
  CHECK(allowed == 0);
}

TEST_CASE("a phase ends at its time, and what changes is still recorded for a while") {
  Tombstones tombstones(kMemory);
  REQUIRE(tombstones.open(kMinute));
  tombstones.add(1);
  CHECK(tombstones.allows_fill("", 2, kMinute - 1));
  CHECK_FALSE(tombstones.allows_fill("", 2, kMinute));
  tombstones.forget_if_over(kMinute);
  CHECK(tombstones.is_recording());
  tombstones.add(3);
  REQUIRE(tombstones.open(2 * kMinute));
  CHECK_FALSE_MESSAGE(tombstones.allows_fill("", 1, kMinute + 1), "of the phase before");
  CHECK_FALSE_MESSAGE(tombstones.allows_fill("", 3, kMinute + 1), "between the phases");
  CHECK(tombstones.allows_fill("", 2, kMinute + 1));
  CHECK(tombstones.due_ns() == 2 * kMinute + Tombstones::kLingerNs);
  tombstones.forget_if_over(tombstones.due_ns());
  CHECK_FALSE(tombstones.is_recording());
  CHECK(tombstones.bytes() == 0);
}

TEST_CASE("a flush refuses all fills of its phase, not of a later one") {
  Tombstones tombstones(kMemory);
  REQUIRE(tombstones.open(kMinute));
  tombstones.add_all();
  CHECK_FALSE(tombstones.allows_fill("", 1, 1));
  REQUIRE(tombstones.open(2 * kMinute));
  CHECK_FALSE(tombstones.allows_fill("", 1, 1));
  tombstones.forget_if_over(tombstones.due_ns());
  REQUIRE(tombstones.open(9 * kMinute));
  CHECK(tombstones.allows_fill("", 1, 1));
}

TEST_CASE("which ops change a key") {
  const auto changes = [](op::OpCode code, op::ResultCode result, uint16_t options = 0,
                          op::SetMode mode = op::SetMode::kSet) {
    op::Op op;
    op.code = code;
    op.options = options;
    op.mode = mode;
    op::Result answer;
    answer.code = result;
    return may_change(op, answer);
  };
  using op::OpCode;
  using op::ResultCode;
  CHECK(changes(OpCode::kSet, ResultCode::kStored));
  CHECK(changes(OpCode::kSet, ResultCode::kTooLarge));
  CHECK(changes(OpCode::kCommit, ResultCode::kOutOfMemory));
  CHECK_FALSE(changes(OpCode::kSet, ResultCode::kNotStored));
  CHECK_FALSE(changes(OpCode::kSet, ResultCode::kExists));
  CHECK_FALSE(changes(OpCode::kSet, ResultCode::kMiss));
  CHECK_FALSE(changes(OpCode::kSet, ResultCode::kStored, 0, op::SetMode::kFill));
  CHECK(changes(OpCode::kDelete, ResultCode::kDeleted));
  CHECK(changes(OpCode::kDelete, ResultCode::kMiss));
  CHECK_FALSE(changes(OpCode::kDelete, ResultCode::kExists));
  CHECK(changes(OpCode::kArith, ResultCode::kNumber));
  CHECK_FALSE(changes(OpCode::kArith, ResultCode::kMiss));
  CHECK_FALSE(changes(OpCode::kGet, ResultCode::kHit));
  CHECK(changes(OpCode::kGet, ResultCode::kHit, op::kTouch));
  CHECK(changes(OpCode::kGet, ResultCode::kHit, op::kVivify));
  CHECK_FALSE(changes(OpCode::kGet, ResultCode::kMiss, op::kTouch));
  CHECK_FALSE(changes(OpCode::kChunk, ResultCode::kHit));
}

TEST_CASE("when the members change again, what was recorded before counts for keys that were this backend's own") {
  Tombstones tombstones(kMemory);
  REQUIRE(tombstones.open(10 * kMinute));
  tombstones.add(1);
  tombstones.turn([](std::string_view key) { return key == "own"; }, kMinute);
  CHECK(tombstones.allows_fill("comes", 1, kMinute));
  CHECK_FALSE(tombstones.allows_fill("own", 1, kMinute));
  tombstones.add(2);
  CHECK_FALSE(tombstones.allows_fill("comes", 2, kMinute));
  SUBCASE("until a fill that was under way then has come") {
    CHECK(tombstones.due_ns() == kMinute + Tombstones::kLingerNs);
    tombstones.forget_if_over(tombstones.due_ns());
    CHECK(tombstones.allows_fill("own", 1, 2 * kMinute));
    CHECK_FALSE(tombstones.allows_fill("own", 2, 2 * kMinute));
  }
  SUBCASE("of two changes, all that was recorded before the second") {
    tombstones.turn([](std::string_view key) { return key == "own"; }, kMinute);
    for (const uint64_t hash : {1, 2}) {
      CHECK_FALSE(tombstones.allows_fill("own", hash, kMinute));
      CHECK(tombstones.allows_fill("comes", hash, kMinute));
    }
  }
  SUBCASE("a flush counts for every key") {
    tombstones.add_all();
    tombstones.turn([](std::string_view) { return false; }, kMinute);
    CHECK_FALSE(tombstones.allows_fill("comes", 3, kMinute));
  }
}
