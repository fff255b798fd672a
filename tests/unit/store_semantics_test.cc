// Memcached's semantics, op by op, through the store's public face.
#include <doctest/doctest.h>

#include "store/number.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;
using op::StatId;

TEST_CASE("a value comes back with its flags, and with its CAS when asked") {
  Harness h;
  CHECK(h.get("a") == "-");
  CHECK(h.set("a", "one", 0, 77) == ResultCode::kStored);
  const op::Result got = h.gets("a");
  CHECK(got.code == ResultCode::kHit);
  CHECK(got.value == "one");
  CHECK(got.total_length == 3);
  CHECK(got.client_flags == 77);
  CHECK(got.cas != 0);
  CHECK(got.version != 0);
}

TEST_CASE("values may be empty, and overwritten by longer and shorter ones, with and without flags") {
  Harness h;
  for (const size_t length : {0, 1, 32, 33, 500, 7, 100'000, 0, 60, 59, 3000}) {
    const std::string value(length, 'v');
    CHECK(h.set("key", value, 0, length % 2 == 0 ? 0 : 9) == ResultCode::kStored);
    CHECK(h.get("key") == value);
    CHECK(h.gets("key").client_flags == (length % 2 == 0 ? 0 : 9));
    CHECK(h.store->counts().items == 1);
    h.check();
  }
}

TEST_CASE("add stores only what is missing, replace, append and prepend only what is there") {
  Harness h;
  CHECK(h.store_as(SetMode::kReplace, "a", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(SetMode::kAppend, "a", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(SetMode::kPrepend, "a", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(SetMode::kAdd, "a", "1") == ResultCode::kStored);
  CHECK(h.store_as(SetMode::kAdd, "a", "2") == ResultCode::kNotStored);
  CHECK(h.get("a") == "1");
  CHECK(h.store_as(SetMode::kReplace, "a", "3") == ResultCode::kStored);
  CHECK(h.store_as(SetMode::kAppend, "a", "45") == ResultCode::kStored);
  CHECK(h.store_as(SetMode::kPrepend, "a", "012") == ResultCode::kStored);
  CHECK(h.get("a") == "012345");
}

TEST_CASE("append and prepend keep flags and exptime and change the CAS") {
  Harness h;
  h.set("a", "middle", 10, 5);
  const uint64_t before = h.gets("a").cas;
  CHECK(h.store_as(SetMode::kAppend, "a", std::string(1000, 'z'), 0, 99) == ResultCode::kStored);
  CHECK(h.store_as(SetMode::kPrepend, "a", "y", 0, 99) == ResultCode::kStored);
  CHECK(h.gets("a").client_flags == 5);
  CHECK(h.gets("a").cas > before);
  CHECK(h.get("a") == "ymiddle" + std::string(1000, 'z'));
  h.pass_seconds(10);
  CHECK(h.get("a") == "-");
}

TEST_CASE("a CAS is unique, grows, and decides") {
  Harness h({.cas_stride = 7, .cas_offset = 3});
  CHECK(h.cas("a", "x", 1) == ResultCode::kMiss);
  h.set("a", "1");
  h.set("b", "1");
  const uint64_t first = h.gets("a").cas;
  CHECK(first % 7 == 3);
  CHECK(h.gets("b").cas > first);
  CHECK(h.cas("a", "x", first + 7) == ResultCode::kExists);
  CHECK(h.cas("a", "x", 0) == ResultCode::kExists);
  CHECK(h.cas("a", "2", first) == ResultCode::kStored);
  CHECK(h.cas("a", "3", first) == ResultCode::kExists);
  CHECK(h.get("a") == "2");
  CHECK(h.stat(StatId::kCasMisses) == 1);
  CHECK(h.stat(StatId::kCasHits) == 1);
  CHECK(h.stat(StatId::kCasBadval) == 3);
  CHECK(h.stat(StatId::kCmdSet) == 7);
}

TEST_CASE("delete and append obey a CAS too") {
  Harness h;
  h.set("a", "1");
  op::Op remove = h.make(op::OpCode::kDelete, "a");
  remove.options = op::kCompareCas;
  remove.cas = h.gets("a").cas + 1;
  CHECK(h.run(remove).code == ResultCode::kExists);
  op::Op append = h.make_set("a", "2", 0, 0, SetMode::kAppend);
  append.options = op::kCompareCas;
  append.cas = remove.cas;
  CHECK(h.run(append).code == ResultCode::kExists);
  append.cas = h.gets("a").cas;
  CHECK(h.run(append).code == ResultCode::kStored);
  remove.cas = h.gets("a").cas;
  CHECK(h.run(remove).code == ResultCode::kDeleted);
  CHECK(h.run(remove).code == ResultCode::kMiss);
}

TEST_CASE("exptime: 0 never, negative at once, up to 30 days from now, beyond that a point in time") {
  Harness h;
  const int64_t now = h.clock.unix_seconds();
  h.set("never", "v", 0);
  h.set("negative", "v", -1);
  h.set("two", "v", 2);
  h.set("absolute", "v", now + 3);
  h.set("past", "v", now - 1);
  h.set("ancient", "v", 2'592'001);
  h.set("thirty", "v", 2'592'000);
  h.set("huge", "v", INT64_MAX);
  CHECK(h.get("negative") == "-");
  CHECK(h.get("past") == "-");
  CHECK(h.get("ancient") == "-");
  CHECK(h.get("two") == "v");
  h.pass_seconds(1);
  CHECK(h.get("two") == "v");
  h.pass_seconds(1);
  CHECK(h.get("two") == "-");
  CHECK(h.get("absolute") == "v");
  h.pass_seconds(1);
  CHECK(h.get("absolute") == "-");
  h.pass_seconds(2'592'000 - 4);
  CHECK(h.get("thirty") == "v");
  h.pass_seconds(1);
  CHECK(h.get("thirty") == "-");
  CHECK(h.get("never") == "v");
  CHECK(h.get("huge") == "v");
}

TEST_CASE("an expired item is a miss to every op, and is taken out") {
  Harness h;
  const auto expire = [&] { h.set("a", "5", -1); };
  expire();
  CHECK(h.stat(StatId::kCurrItems) == 1);
  CHECK(h.store_as(SetMode::kReplace, "a", "x") == ResultCode::kNotStored);
  CHECK(h.stat(StatId::kCurrItems) == 0);
  CHECK(h.stat(StatId::kGetExpired) == 1);
  expire();
  CHECK(h.store_as(SetMode::kAppend, "a", "x") == ResultCode::kNotStored);
  expire();
  CHECK(h.arith("a", 1).code == ResultCode::kMiss);
  expire();
  CHECK(h.erase("a") == ResultCode::kMiss);
  expire();
  CHECK(h.touch("a", 0) == ResultCode::kMiss);
  expire();
  CHECK(h.cas("a", "x", 1) == ResultCode::kMiss);
  expire();
  CHECK(h.store_as(SetMode::kAdd, "a", "6") == ResultCode::kStored);
  CHECK(h.get("a") == "6");
  CHECK(h.stat(StatId::kBytes) > 0);
  h.erase("a");
  CHECK(h.stat(StatId::kBytes) == 0);
}

TEST_CASE("touch and gat give a new exptime and leave the CAS alone") {
  Harness h;
  h.set("a", "v", 5);
  const uint64_t cas = h.gets("a").cas;
  CHECK(h.touch("a", 100) == ResultCode::kHit);
  h.pass_seconds(6);
  CHECK(h.gat("a", 10).value == "v");
  CHECK(h.gat("a", 10, op::kWantCas).cas == cas);
  h.pass_seconds(10);
  CHECK(h.gat("a", 10).code == ResultCode::kMiss);
  CHECK(h.touch("a", 10) == ResultCode::kMiss);
  CHECK(h.set("b", "v") == ResultCode::kStored);
  CHECK(h.touch("b", -1) == ResultCode::kHit);
  CHECK(h.get("b") == "-");
}

TEST_CASE("incr wraps, decr stops at 0, a shorter number is padded") {
  Harness h;
  CHECK(h.arith("n", 1).code == ResultCode::kMiss);
  h.set("n", "99", 100, 3);
  const uint64_t cas = h.gets("n").cas;
  CHECK(h.arith("n", 1).number == 100);
  CHECK(h.get("n") == "100");
  CHECK(h.arith("n", 91, op::kDecrement).number == 9);
  CHECK(h.get("n") == "9  ");
  CHECK(h.arith("n", 1).number == 10);
  CHECK(h.get("n") == "10 ");
  CHECK(h.arith("n", 11, op::kDecrement).number == 0);
  CHECK(h.arith("n", UINT64_MAX).number == UINT64_MAX);
  CHECK(h.arith("n", 2).number == 1);
  CHECK(h.get("n") == "1" + std::string(19, ' '));
  CHECK(h.gets("n").client_flags == 3);
  CHECK(h.gets("n").cas > cas);
  h.pass_seconds(100);
  CHECK(h.arith("n", 1).code == ResultCode::kMiss);
}

TEST_CASE("what is no number stays as it is") {
  Harness h;
  for (const std::string value :
       {"", "a", "1a", "-1", "- 1", "+-1", "0x10", "18446744073709551616", "  ", "1.0", "9223372036854775808 -"}) {
    h.set("n", value);
    CHECK_MESSAGE(h.arith("n", 1).code == ResultCode::kNonNumeric, value);
    CHECK(h.get("n") == value);
  }
  h.set("n", "5" + std::string(600'000, ' '));
  CHECK(h.arith("n", 1).code == ResultCode::kNonNumeric);
}

TEST_CASE("numbers are read as strtoull reads them") {
  CHECK(parse_number("0") == 0);
  CHECK(parse_number(" \t\r\n12") == 12);
  CHECK(parse_number("+12 ab") == 12);
  CHECK(parse_number("0012\n") == 12);
  CHECK(parse_number(std::string_view("12\0ab", 5)) == 12);
  CHECK(parse_number("18446744073709551615") == UINT64_MAX);
  CHECK(parse_number("-18446744073709551615") == 1);
  CHECK(parse_number("-0") == 0);
  CHECK(parse_number(std::string_view("9223372036854775808\0-", 21)) == uint64_t{1} << 63);
  CHECK(!parse_number("-9223372036854775808"));
  CHECK(parse_number("-9223372036854775809") == INT64_MAX);
  CHECK(!parse_number("99999999999999999999"));
}

TEST_CASE("arith with kCreate makes a missing item of its initial value") {
  Harness h;
  op::Op incr = h.make(op::OpCode::kArith, "n");
  incr.options = op::kCreate;
  incr.delta = 5;
  incr.initial = 100;
  incr.vivify_exptime = 10;
  CHECK(h.run(incr).number == 100);
  CHECK(h.run(incr).number == 105);
  CHECK(h.get("n") == "105");
  CHECK(h.stat(StatId::kIncrMisses) == 0);
  h.pass_seconds(10);
  CHECK(h.get("n") == "-");
}

TEST_CASE("item_size_max is memcached's to the byte, and a plain set that fails removes the old item") {
  Harness h(small_store());
  const size_t largest = (64u << 10) - 48 - 8 - 1 - 1 - 2;
  CHECK(h.set("k", std::string(largest, 'v')) == ResultCode::kStored);
  CHECK(h.get("k").size() == largest);
  CHECK(h.store_as(SetMode::kAppend, "k", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(SetMode::kReplace, "k", std::string(largest + 1, 'v')) == ResultCode::kTooLarge);
  CHECK(h.cas("k", std::string(largest + 1, 'v'), h.gets("k").cas) == ResultCode::kTooLarge);
  CHECK(h.get("k").size() == largest);
  CHECK(h.set("k", std::string(largest - 3, 'v'), 0, 1) == ResultCode::kTooLarge);
  CHECK(h.get("k") == "-");
  CHECK(h.set("k", std::string(largest - 4, 'v'), 0, 1) == ResultCode::kStored);
  CHECK(h.set("kk", std::string(largest, 'v')) == ResultCode::kTooLarge);
  CHECK(h.stat(StatId::kStoreTooLarge) == 4);
  CHECK(h.stat(StatId::kCmdSet) == 3);
}

TEST_CASE("each op moves the counters that memcached moves") {
  Harness h;
  h.set("a", "1");
  h.get("a");
  h.get("none");
  h.gat("a", 0);
  h.gat("none", 0);
  h.touch("a", 0);
  h.touch("none", 0);
  h.arith("a", 1);
  h.arith("none", 1);
  h.arith("a", 1, op::kDecrement);
  h.arith("none", 1, op::kDecrement);
  h.erase("a");
  h.erase("a");
  const std::pair<StatId, uint64_t> expected[] = {
      {StatId::kCmdGet, 2},    {StatId::kGetHits, 1},     {StatId::kGetMisses, 1},  {StatId::kCmdTouch, 4},
      {StatId::kTouchHits, 2}, {StatId::kTouchMisses, 2}, {StatId::kIncrHits, 1},   {StatId::kIncrMisses, 1},
      {StatId::kDecrHits, 1},  {StatId::kDecrMisses, 1},  {StatId::kDeleteHits, 1}, {StatId::kDeleteMisses, 1},
      {StatId::kCmdSet, 1},    {StatId::kTotalItems, 1},  {StatId::kCurrItems, 0}};
  for (const auto& row : expected) {
    CAPTURE(static_cast<int>(row.first));
    CHECK(h.stat(row.first) == row.second);
  }
}

TEST_CASE("what is counted since the start does not go down at a reset") {
  Harness h;
  h.set("k", "v");
  h.get("k");
  const auto of_start = [&] {
    std::vector<op::StatRow> rows;
    h.store->append_stats(op::StatGroup::kGeneral, rows, Store::Since::kStart);
    return rows;
  };
  const std::vector<op::StatRow> before = of_start();
  h.store->reset_stats();
  h.get("k");
  h.store->reset_stats();
  const std::vector<op::StatRow> after = of_start();
  for (size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].id);
    const bool gets = before[i].id == static_cast<uint32_t>(op::StatId::kCmdGet) ||
                      before[i].id == static_cast<uint32_t>(op::StatId::kGetHits);
    const bool steps = before[i].id >= static_cast<uint32_t>(op::StatId::kStepsUnder1us);
    if (steps) {
      CHECK(after[i].value >= before[i].value);
    } else {
      CHECK(after[i].value == before[i].value + (gets ? 1 : 0));
    }
  }
}

TEST_CASE("a reset clears event counters and keeps gauges") {
  Harness h;
  h.set("a", "1");
  h.get("a");
  h.store->reset_stats();
  CHECK(h.stat(StatId::kCmdGet) == 0);
  CHECK(h.stat(StatId::kTotalItems) == 0);
  CHECK(h.stat(StatId::kCurrItems) == 1);
  CHECK(h.stat(StatId::kBytes) > 0);
  CHECK(h.stat(StatId::kLimitMaxbytes) == 64u << 20);
}

TEST_CASE("the ops of a batch see those before them") {
  Harness h;
  std::vector<op::Op> ops = {h.make(op::OpCode::kGet, "a"), h.make_set("a", "1"), h.make(op::OpCode::kGet, "a"),
                             h.make(op::OpCode::kDelete, "a"), h.make(op::OpCode::kGet, "a")};
  h.store->prepare(ops);
  h.store->locate();
  CHECK(h.store->execute(0).code == ResultCode::kMiss);
  CHECK(h.store->execute(1).code == ResultCode::kStored);
  CHECK(h.store->execute(2).value == "1");
  CHECK(h.store->execute(3).code == ResultCode::kDeleted);
  CHECK(h.store->execute(4).code == ResultCode::kMiss);
}

TEST_CASE("ops the store does not know, and keys that cannot be, are refused") {
  Harness h;
  CHECK(h.run(h.make(op::OpCode::kPing, "a")).code == ResultCode::kUnsupported);
  CHECK(h.run(h.make(op::OpCode::kGet, "")).code == ResultCode::kInvalid);
  CHECK(h.set(std::string(251, 'k'), "v") == ResultCode::kInvalid);
  CHECK(h.set(std::string(250, 'k'), "v") == ResultCode::kStored);
}

TEST_CASE("a memory limit that cannot hold two of the largest items is refused") {
  base::ManualClock clock;
  StoreConfig config;
  config.clock = &clock;
  config.memory_limit = (2u << 20) - 1;
  CHECK(!Store::create(config).is_ok());
  config.memory_limit = 2u << 20;
  CHECK(Store::create(config).is_ok());
  config.memory_limit = kMaxMemory + 1;
  CHECK(!Store::create(config).is_ok());
  config.memory_limit = kMinMemory;
  config.item_size_max = kMinMemory / 2;
  CHECK(Store::create(config).is_ok());
  config.item_size_max += 1;
  CHECK(!Store::create(config).is_ok());
}

TEST_CASE("a set says whether the item is new") {
  Harness h(small_store(4u << 20));
  const auto is_new = [&](op::SetMode mode, std::string_view key) {
    const op::Result result = h.run(h.make_set(key, "v", 0, 0, mode));
    REQUIRE(result.code == ResultCode::kStored);
    return (result.marks & op::kCreated) != 0;
  };
  CHECK(is_new(op::SetMode::kSet, "a"));
  CHECK_FALSE(is_new(op::SetMode::kSet, "a"));
  CHECK_FALSE(is_new(op::SetMode::kReplace, "a"));
  CHECK_FALSE(is_new(op::SetMode::kAppend, "a"));
  CHECK(is_new(op::SetMode::kAdd, "b"));
  h.erase("a");
  CHECK(is_new(op::SetMode::kSet, "a"));
}

TEST_CASE("a delete says how long the value was") {
  Harness h(small_store(4u << 20));
  h.set("short", "12345");
  h.set("long", std::string(50'000, 'v'));
  h.set("empty", "");
  CHECK(h.run(h.make(op::OpCode::kDelete, "short")).number == 5);
  CHECK(h.run(h.make(op::OpCode::kDelete, "long")).number == 50'000);
  CHECK(h.run(h.make(op::OpCode::kDelete, "empty")).number == 0);
}

}  // namespace egret::store
