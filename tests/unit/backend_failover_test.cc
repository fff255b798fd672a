// A partition that is used in the place of an owner that cannot be reached: what it shows, and what it remembers.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "backend/executor.h"
#include "op/hash.h"
#include "op/records.h"

using namespace egret::backend;
using namespace egret::op;
using egret::base::ManualClock;

namespace {

constexpr uint64_t kTag = 0x1234'5678'9abc'def0;

Op make(OpCode code, std::string_view key = "", std::string_view value = "", uint64_t owner = kTag) {
  Op op;
  op.code = code;
  op.key = key;
  op.value = value;
  op.owner = owner;
  return op;
}

struct Partition {
  explicit Partition(const std::string& warm_file = "", uint32_t partitions = 1) {
    auto made = Executor::create({.partitions = partitions,
                                  .memory = 16 << 20,
                                  .item_size_max = 1 << 20,
                                  .hash_seed = 5,
                                  .warm_file = warm_file},
                                 clock);
    REQUIRE_MESSAGE(made.is_ok(), made.status().message());
    executor = std::move(made.value());
    executor->lane_attached(0, {});
    executor->lane_attached(1, {.rights = kMayRead | kMayWrite | kMayDump});
    executor->lane_attached(2, {.rights = kMayRead | kMayWrite | kMayFlush});
    clock.advance_seconds(1);
  }
  Result run(Op op, egret::rpc::LaneId lane = 0) {
    executor->begin_round();
    executor->foresee({&op, 1});
    executor->prepare({&op, 1}, {&lane, 1});
    executor->locate();
    Result result = executor->execute(0);
    value = result.value;
    result.value = value;
    return result;
  }
  ResultCode code(const Op& op, egret::rpc::LaneId lane = 0) { return run(op, lane).code; }
  ResultCode set(std::string_view key, std::string_view text, uint64_t owner = kTag) {
    return code(make(OpCode::kSet, key, text, owner));
  }
  std::string get(std::string_view key, uint64_t owner = kTag) {
    const Result result = run(make(OpCode::kGet, key, "", owner));
    return result.code == ResultCode::kHit ? std::string(result.value) : "-";
  }
  Result iterate(uint64_t cursor, uint64_t owner = kTag) {
    Op op = make(OpCode::kIterate, "", "", owner);
    op.group = static_cast<uint8_t>(RecordSource::kChanged);
    op.version = cursor;
    return run(op);
  }
  uint64_t enter(uint64_t owner = kTag) { return iterate(kEnterFailover, owner).version; }
  // None: any key may be one.
  std::optional<std::set<std::string>> changed(uint64_t cursor) {
    std::set<std::string> keys;
    while (true) {
      const Result page = iterate(cursor);
      REQUIRE(page.code == ResultCode::kOk);
      if (page.number != 0) return std::nullopt;
      std::string_view records = page.value;
      Record record;
      while (take_record(records, record)) keys.emplace(record.key);
      if (page.value.empty()) return keys;
      cursor = page.version;
    }
  }

  ManualClock clock;
  std::unique_ptr<Executor> executor;
  std::string value;
};

using Keys = std::set<std::string>;

}  // namespace

TEST_CASE("an op with a tag sees no item from before its owner was entered; others do") {
  Partition partition;
  partition.enter();
  partition.set("a", "of the first failover");
  partition.set("own", "1", 0);
  CHECK(partition.get("a") == "of the first failover");
  partition.enter();
  CHECK(partition.get("own", 0) == "1");
  CHECK(partition.get("a") == "-");
  Op add = make(OpCode::kSet, "own", "2");
  add.mode = SetMode::kAdd;
  CHECK(partition.code(add) == ResultCode::kStored);
  CHECK(partition.get("own") == "2");
  partition.set("b", "5");
  partition.enter(kTag + 1);
  CHECK_MESSAGE(partition.get("b") == "5", "another owner's entry changes nothing");
  partition.enter();
  Op incr = make(OpCode::kArith, "b");
  incr.delta = 1;
  CHECK(partition.code(incr) == ResultCode::kMiss);
  CHECK(partition.code(make(OpCode::kDelete, "b")) == ResultCode::kMiss);
}

TEST_CASE("a tag that is not known sees nothing from before, as after a restart") {
  Partition partition;
  partition.set("a", "x", 0);
  CHECK(partition.get("a") == "-");
  partition.set("a", "y");
  CHECK(partition.get("a") == "y");
}

TEST_CASE("what changes a key is remembered, by every kind of op; what only reads, or finds nothing, is not") {
  Partition partition;
  const uint64_t cursor = partition.enter();
  partition.get("read");
  Op replace = make(OpCode::kSet, "replaced", "x");
  replace.mode = SetMode::kReplace;
  partition.run(replace);
  CHECK(partition.changed(cursor) == Keys{});
  partition.set("set", "1");
  partition.code(make(OpCode::kDelete, "deleted"));
  Op incr = make(OpCode::kArith, "created");
  incr.options = kCreate;
  partition.run(incr);
  Op touch = make(OpCode::kGet, "set");
  touch.options = kTouch;
  partition.run(touch);
  Op vivify = make(OpCode::kGet, "vivified");
  vivify.options = kVivify;
  partition.run(vivify);
  Op part = make(OpCode::kUpload, "uploaded", "abc", 0);
  part.length = 3;
  partition.run(part);
  CHECK(partition.code(make(OpCode::kCommit, "uploaded")) == ResultCode::kStored);
  partition.set("untagged", "1", 0);
  CHECK(partition.changed(cursor) == Keys{"set", "deleted", "created", "vivified", "uploaded"});
  CHECK(partition.executor->levels().absent_owners == 1);
  CHECK(partition.executor->levels().changed_bytes > 0);
}

TEST_CASE("after a flush with a tag any key may be one") {
  Partition partition;
  const uint64_t cursor = partition.enter();
  partition.code(make(OpCode::kFlush, "", "", 0));
  CHECK(partition.changed(cursor) == Keys{});
  partition.code(make(OpCode::kFlush));
  CHECK_FALSE(partition.changed(cursor).has_value());
}

TEST_CASE("a warm restart forgets what was changed, and says so; what was stored before is not seen") {
  const std::string file = "/dev/shm/egret-failover-test." + std::to_string(::getpid());
  uint64_t cursor = 0;
  {
    Partition first(file);
    cursor = first.enter();
    first.set("a", "x");
  }
  Partition second(file);
  CHECK(second.get("a", 0) == "x");
  CHECK_FALSE(second.changed(cursor).has_value());
  CHECK(second.get("a") == "-");
  CHECK_FALSE(second.changed(cursor).has_value());
  second.executor.reset();
  std::remove(file.c_str());
}

TEST_CASE("ops with a tag need the right to flush, and changes the one to list keys, too; a refused op does nothing") {
  Partition partition;
  partition.set("a", "x", 0);
  CHECK(partition.code(make(OpCode::kGet, "a"), 1) == ResultCode::kForbidden);
  CHECK(partition.code(make(OpCode::kSet, "a", "y"), 1) == ResultCode::kForbidden);
  CHECK(partition.executor->levels().absent_owners == 0);
  CHECK(partition.get("a", 0) == "x");
  CHECK(partition.code(make(OpCode::kSet, "b", "y"), 2) == ResultCode::kStored);
  Op changes = make(OpCode::kIterate);
  changes.group = static_cast<uint8_t>(RecordSource::kChanged);
  CHECK(partition.code(changes, 1) == ResultCode::kForbidden);
  CHECK(partition.code(changes, 2) == ResultCode::kForbidden);
}

TEST_CASE("a key of another partition is refused, and changes nothing; a page of items cannot have a tag") {
  Partition partition("", 2);
  std::string foreign = "k0";
  for (int i = 0; partition_of(hash_key(foreign, 5), 2) == 0; ++i) foreign = "k" + std::to_string(i);
  CHECK(partition.set(foreign, "x") == ResultCode::kWrongPartition);
  CHECK(partition.executor->levels().absent_owners == 0);
  CHECK(partition.code(make(OpCode::kIterate)) == ResultCode::kInvalid);
  Op untagged = make(OpCode::kIterate, "", "", 0);
  untagged.group = static_cast<uint8_t>(RecordSource::kChanged);
  CHECK(partition.code(untagged) == ResultCode::kOk);
}

TEST_CASE("without a tag the owners are listed, with the end of their changes and up to where they are purged") {
  Partition partition;
  const auto listed = [&] {
    std::map<uint64_t, ChangedOwner> owners;
    std::string_view records = partition.iterate(0, 0).value;
    for (Record record; take_record(records, record);) {
      ChangedOwner owner{};
      REQUIRE(record.key.size() == sizeof owner);
      std::memcpy(&owner, record.key.data(), sizeof owner);
      owners[owner.tag] = owner;
    }
    return owners;
  };
  CHECK(listed().empty());
  const uint64_t from = partition.enter();
  partition.set("a", "1");
  const ChangedOwner first = listed().at(kTag);
  CHECK(first.purged == from);
  CHECK(first.end > from);
  Op mark = make(OpCode::kIterate);
  mark.group = static_cast<uint8_t>(RecordSource::kChanged);
  mark.version = first.end;
  mark.size_class = kPurgedBefore;
  CHECK(partition.code(mark) == ResultCode::kOk);
  CHECK(listed().at(kTag).purged == first.end);
  mark.version = UINT64_MAX;  // no place in the log
  partition.code(mark);
  CHECK(listed().at(kTag).purged == first.end);
}

// An owner and this stand-in, and a proxy that now and then cannot reach the owner. The model: the newest value of each
// key. No value older than the newest is ever read.
TEST_CASE("a proxy that enters, and purges what was changed before it goes back, never reads an older value") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Partition owner;
    Partition gutter;
    std::map<std::string, std::string> newest;
    uint64_t cursor = 0;
    bool is_away = false;
    size_t hits = 0;
    for (int step = 0; step < 8'000; ++step) {
      const std::string key = "k" + std::to_string(random() % 200);
      Partition& at = is_away ? gutter : owner;
      const uint64_t tag = is_away ? kTag : 0;
      switch (random() % 100) {
        case 0:
          is_away = !is_away;
          if (is_away) {
            cursor = gutter.enter();
          } else if (const auto keys = gutter.changed(cursor); keys.has_value()) {
            for (const std::string& changed : *keys) owner.code(make(OpCode::kDelete, changed, "", 0));
          } else {
            owner.code(make(OpCode::kFlush, "", "", 0));
          }
          break;
        case 1:
          if (random() % 10 == 0) {
            at.code(make(OpCode::kFlush, "", "", tag));
            newest.clear();
          }
          break;
        default:
          if (random() % 3 == 0) {
            newest[key] = std::to_string(step);
            at.set(key, newest[key], tag);
          } else if (random() % 6 == 0) {
            newest.erase(key);
            at.code(make(OpCode::kDelete, key, "", tag));
          } else {
            const std::string got = at.get(key, tag);
            REQUIRE_MESSAGE((got == "-" || (newest.contains(key) && got == newest[key])), key);
            hits += got == "-" ? 0 : 1;
          }
      }
    }
    CHECK(hits > 500);
  }
}
