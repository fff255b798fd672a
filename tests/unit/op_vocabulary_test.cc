// Ops and results: numbers on the wire, names in logs, rows of `stats`.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "op/item_size.h"
#include "op/op.h"
#include "op/records.h"
#include "op/stats.h"

using namespace egret::op;

TEST_CASE("numbers that are on the wire never change") {
  CHECK(static_cast<int>(OpCode::kGet) == 1);
  CHECK(static_cast<int>(OpCode::kUpload) == 6);
  CHECK(static_cast<int>(OpCode::kIterate) == 11);
  CHECK(static_cast<int>(OpCode::kPing) == 13);
  CHECK(static_cast<int>(SetMode::kPrepend) == 4);
  CHECK(static_cast<int>(SetMode::kFill) == 5);
  CHECK(kSetModes == 6);
  CHECK(kPin == 64);
  CHECK(static_cast<int>(ResultCode::kHit) == 1);
  CHECK(static_cast<int>(ResultCode::kWrongPartition) == 15);
  CHECK(static_cast<int>(ResultCode::kForbidden) == 16);
  CHECK(static_cast<int>(StatId::kCmdGet) == 1);
  CHECK(static_cast<int>(StatId::kBytes) == 23);
  CHECK(static_cast<int>(StatId::kItemSizeMax) == 35);
  CHECK(static_cast<int>(StatId::kEvicts) == 36);
  CHECK(static_cast<int>(AdminVerb::kResetStats) == 1);
  CHECK(static_cast<int>(AdminVerb::kCheck) == 2);
  CHECK(static_cast<int>(AdminVerb::kMemoryLimit) == 3);
  CHECK(static_cast<int>(AdminVerb::kMoveClock) == 4);
  CHECK(static_cast<int>(AdminVerb::kWarm) == 5);
  CHECK(static_cast<int>(AdminVerb::kMember) == 6);
  CHECK(static_cast<int>(RecordSource::kItems) == 0);
  CHECK(static_cast<int>(RecordSource::kEvicted) == 1);
  CHECK(static_cast<int>(RecordSource::kChanged) == 2);
}

TEST_CASE("ops on one item have a key; those on a whole partition, and codes of later versions, have none") {
  const std::set<OpCode> on_an_item{OpCode::kGet,   OpCode::kSet,    OpCode::kDelete, OpCode::kArith,
                                    OpCode::kChunk, OpCode::kUpload, OpCode::kCommit, OpCode::kAbort};
  for (int byte = 0; byte < 256; ++byte) {
    const auto code = static_cast<OpCode>(byte);
    CAPTURE(byte);
    CHECK(has_key(code) == on_an_item.contains(code));
  }
}

TEST_CASE("every code has a name of its own, and any other byte has one, too") {
  std::set<std::string> ops;
  for (int code = 1; code <= 13; ++code) ops.insert(to_string(static_cast<OpCode>(code)));
  CHECK(ops.size() == 13);
  CHECK_FALSE(ops.contains("unknown"));
  CHECK(std::string(to_string(static_cast<OpCode>(0))) == "unknown");
  CHECK(std::string(to_string(static_cast<OpCode>(255))) == "unknown");
  std::set<std::string> results;
  for (int code = 0; code <= 16; ++code) results.insert(to_string(static_cast<ResultCode>(code)));
  results.insert(to_string(ResultCode::kSessionLost));
  results.insert(to_string(ResultCode::kTimedOut));
  results.insert(to_string(ResultCode::kNotSent));
  CHECK(results.size() == 20);
  CHECK_FALSE(results.contains("unknown"));
  CHECK(std::string(to_string(static_cast<ResultCode>(17))) == "unknown");
}

TEST_CASE("a result is partial when there is more to its value") {
  Result result;
  CHECK_FALSE(result.is_partial());
  result.total_length = 3;
  CHECK(result.is_partial());
  result.value = "abc";
  CHECK_FALSE(result.is_partial());
}

TEST_CASE("the table of statistics has one row for each id, in order, with help") {
  uint32_t last = 0;
  std::set<std::string_view> names;
  for (const StatInfo& row : stat_table()) {
    CHECK(static_cast<uint32_t>(row.id) == last + 1);
    last = static_cast<uint32_t>(row.id);
    names.insert(row.name);
    CHECK_FALSE(row.help.empty());
  }
  CHECK(last == static_cast<uint32_t>(StatId::kStepsOver64us));
  CHECK(names.size() == stat_table().size());
}

TEST_CASE("an item's size is counted as memcached counts it") {
  // A key of 3 bytes costs 62 with all that surrounds it, and 4 more when the client has flags.
  constexpr uint64_t kLimit = 1 << 20;
  CHECK(memcached_item_size(3, 0, kLimit - 62) == kLimit);
  CHECK(memcached_item_size(3, 1, kLimit - 62) == kLimit + 4);
  CHECK(memcached_item_size(250, 0, 0) == 309);
  CHECK(memcached_item_size(1, 0xffff'ffff, uint64_t{1} << 32) > uint64_t{1} << 32);
}
