// How one partition executes ops: keys of other partitions, values in parts, pinned versions, statistics. The store has
// tests of its own.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/executor.h"
#include "op/hash.h"
#include "op/records.h"

using namespace egret::backend;
using namespace egret::op;
using egret::base::ManualClock;

namespace {

struct Partition {
  explicit Partition(uint32_t partitions = 1, uint32_t number = 0, uint64_t memory = 16 << 20,
                     bool allow_debugtime = false) {
    auto made = Executor::create({.partition = number,
                                  .partitions = partitions,
                                  .memory = memory,
                                  .item_size_max = 1 << 20,
                                  .evict = true,
                                  .hash_seed = 5,
                                  .allow_debugtime = allow_debugtime},
                                 clock);
    REQUIRE_MESSAGE(made.is_ok(), made.status().message());
    executor = std::move(made.value());
    for (egret::rpc::LaneId lane = 0; lane < 256; ++lane) executor->lane_attached(lane, {});
  }
  // The result's value is where the store has it.
  Result run_in_place(const Op& op, egret::rpc::LaneId lane = 0) {
    last_op = op;
    last_lane = lane;
    executor->begin_round();
    executor->foresee({&last_op, 1});
    executor->prepare({&last_op, 1}, {&last_lane, 1});
    executor->locate();
    return executor->execute(0);
  }
  Result run(const Op& op, egret::rpc::LaneId lane = 0) {
    Result result = run_in_place(op, lane);
    value = result.value;
    result.value = value;
    return result;
  }
  ResultCode code(const Op& op, egret::rpc::LaneId lane = 0) { return run(op, lane).code; }

  ManualClock clock;
  std::unique_ptr<Executor> executor;
  std::string value;
  Op last_op;
  egret::rpc::LaneId last_lane = 0;
};

Op make(OpCode code, std::string_view key = "", std::string_view value = "") {
  Op op;
  op.code = code;
  op.key = key;
  op.value = value;
  return op;
}

Op part(uint32_t id, uint32_t offset, uint32_t length, std::string_view value, std::string_view key = "key") {
  Op op = make(OpCode::kUpload, key, value);
  op.upload_id = id;
  op.offset = offset;
  op.length = length;
  return op;
}

Op with_id(OpCode code, uint32_t id, std::string_view key = "key") {
  Op op = make(code, key);
  op.upload_id = id;
  return op;
}

}  // namespace

TEST_SUITE("keys") {
  TEST_CASE("each key is answered by exactly one of the partitions") {
    std::vector<std::unique_ptr<Partition>> partitions;
    for (uint32_t i = 0; i < 3; ++i) partitions.push_back(std::make_unique<Partition>(3, i));
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key:" + std::to_string(i);
      const uint32_t owner = partition_of(hash_key(key, 5), 3);
      for (uint32_t p = 0; p < 3; ++p) {
        CHECK(partitions[p]->code(make(OpCode::kSet, key, "v")) ==
              (p == owner ? ResultCode::kStored : ResultCode::kWrongPartition));
      }
    }
  }

  TEST_CASE("the hash that a client might have sent is of no account") {
    Partition partition;
    Op set = make(OpCode::kSet, "key", "v");
    set.hash = 12345;
    CHECK(partition.code(set) == ResultCode::kStored);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kHit);
  }

  TEST_CASE("a batch is executed in order: what an op stores, the next one of the batch sees") {
    Partition partition;
    Op ops[] = {make(OpCode::kSet, "a", "1"), make(OpCode::kGet, "a"), make(OpCode::kDelete, "a"),
                make(OpCode::kGet, "a")};
    const egret::rpc::LaneId lanes[4] = {0, 1, 2, 3};
    partition.executor->begin_round();
    partition.executor->foresee(ops);
    partition.executor->prepare(ops, lanes);
    partition.executor->locate();
    const ResultCode expected[] = {ResultCode::kStored, ResultCode::kHit, ResultCode::kDeleted, ResultCode::kMiss};
    for (size_t i = 0; i < 4; ++i) CHECK(partition.executor->execute(i).code == expected[i]);
  }

  TEST_CASE("ping is answered; an unknown op is unsupported") {
    Partition partition;
    CHECK(partition.code(make(OpCode::kPing)) == ResultCode::kOk);
    CHECK(partition.code(make(static_cast<OpCode>(200), "key", "fields")) == ResultCode::kUnsupported);
  }
}

TEST_SUITE("values in parts") {
  TEST_CASE("parts are invisible until the commit, which is judged then") {
    Partition partition;
    CHECK(partition.code(part(1, 0, 6, "abc")) == ResultCode::kOk);
    CHECK(partition.code(part(1, 3, 6, "def")) == ResultCode::kOk);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss);
    Op commit = with_id(OpCode::kCommit, 1);
    commit.client_flags = 9;
    CHECK(partition.code(commit) == ResultCode::kStored);
    const Result got = partition.run(make(OpCode::kGet, "key"));
    CHECK(got.value == "abcdef");
    CHECK(got.client_flags == 9);
    partition.run(part(2, 0, 3, "xyz"));
    Op add = with_id(OpCode::kCommit, 2);
    add.mode = SetMode::kAdd;
    CHECK(partition.code(add) == ResultCode::kNotStored);
    CHECK(partition.run(make(OpCode::kGet, "key")).value == "abcdef");
  }

  TEST_CASE("a commit of what is incomplete, unknown or aborted stores nothing") {
    Partition partition;
    partition.run(part(1, 0, 6, "abc"));
    CHECK(partition.code(with_id(OpCode::kCommit, 1)) != ResultCode::kStored);
    CHECK(partition.code(with_id(OpCode::kCommit, 99)) != ResultCode::kStored);
    partition.run(part(2, 0, 3, "abc"));
    CHECK(partition.code(with_id(OpCode::kAbort, 2)) == ResultCode::kOk);
    CHECK(partition.code(with_id(OpCode::kCommit, 2)) != ResultCode::kStored);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss);
  }

  TEST_CASE("a part with a gap, out of order, of another key or another length spoils its upload") {
    const Op bad[] = {part(1, 4, 6, "ef"), part(1, 2, 6, "cd"), part(1, 3, 6, "d", "other"), part(1, 3, 7, "d")};
    for (const Op& spoiler : bad) {
      Partition partition;
      REQUIRE(partition.code(part(1, 0, 6, "abc")) == ResultCode::kOk);
      CHECK(partition.code(spoiler) == ResultCode::kInvalid);
      CHECK(partition.code(part(1, 3, 6, "def")) == ResultCode::kInvalid);
      CHECK(partition.code(with_id(OpCode::kCommit, 1)) != ResultCode::kStored);
    }
    Partition partition;
    CHECK_MESSAGE(partition.code(part(1, 3, 6, "def")) == ResultCode::kNoUpload, "no first part");
  }

  TEST_CASE("a client of the partition's thread has an op executed at once, until it has had its share of a round") {
    Partition partition;
    Executor::DirectLane direct(*partition.executor, 0);
    LoanName lent;
    Result result;
    const auto execute = [&](Op op) {
      op.hash = hash_key(op.key, 5);
      return direct.execute(op, result, lent);
    };
    REQUIRE(execute(make(OpCode::kSet, "key", "value")));
    CHECK(result.code == ResultCode::kStored);
    uint64_t executed = 1;
    for (; execute(make(OpCode::kGet, "key")); ++executed) REQUIRE(result.value == "value");
    CHECK(executed == egret::rpc::SlotPoller::kLaneWork);
    CHECK(partition.executor->counters().direct_ops == executed);
    CHECK_MESSAGE(partition.code(make(OpCode::kGet, "key")) == ResultCode::kHit, "by a slot as ever");
    partition.executor->end_round();
    CHECK(execute(make(OpCode::kGet, "other")));
    CHECK(result.code == ResultCode::kMiss);
    CHECK(execute(make(OpCode::kDelete, "key")));
    CHECK(result.code == ResultCode::kDeleted);
  }

  TEST_CASE("a client of the partition's thread has ops executed together: each finds what those before it have left") {
    struct Taker final : egret::op::ResultTaker {
      void on_result(size_t index, Result& result, const LoanName& lent) override {
        CHECK(index == codes.size());
        codes.push_back(result.code);
        values.emplace_back(result.value);
        loans.push_back(lent);
      }
      std::vector<ResultCode> codes;
      std::vector<std::string> values;
      std::vector<LoanName> loans;
    };
    Partition partition;
    Executor::DirectLane direct(*partition.executor, 0);
    const std::string value(50'000, 'v');
    std::vector<Op> ops = {make(OpCode::kGet, "key"), make(OpCode::kSet, "key", "one"),
                           make(OpCode::kGet, "key"), make(OpCode::kDelete, "key"),
                           make(OpCode::kGet, "key"), make(OpCode::kSet, "key", value),
                           make(OpCode::kGet, "key")};
    for (Op& op : ops) op.hash = hash_key(op.key, 5);
    Taker taker;
    REQUIRE(direct.has_share());
    direct.execute_all(ops, taker);
    CHECK(taker.codes == std::vector{ResultCode::kMiss, ResultCode::kStored, ResultCode::kHit, ResultCode::kDeleted,
                                     ResultCode::kMiss, ResultCode::kStored, ResultCode::kHit});
    CHECK(taker.values[2] == "one");
    REQUIRE(taker.loans[6].loan != nullptr);
    REQUIRE(Loan::take(taker.loans[6]));
    CHECK(taker.loans[6].loan->length() == value.size());
    taker.loans[6].loan->give_back();
    CHECK(partition.executor->counters().direct_ops == ops.size());
    CHECK(partition.executor->counters().direct_messages == 1);
    for (uint32_t i = 0; i < egret::rpc::SlotPoller::kLaneWork / 2; ++i) {
      Taker again;
      direct.execute_all(std::span(ops).last(1), again);
      REQUIRE(again.loans[0].loan != nullptr);
      REQUIRE(Loan::take(again.loans[0]));
      again.loans[0].loan->give_back();
    }
    CHECK_MESSAGE(direct.has_share(), "what is lent is not copied");
    while (direct.has_share()) {
      Taker again;
      direct.execute_all(std::span(ops).subspan(3, 2), again);  // nothing that is lent
    }
    partition.executor->end_round();
    CHECK(direct.has_share());
  }

  TEST_CASE("an op that is executed at once finds the time of its round, and what its lane may do") {
    Partition partition;
    partition.executor->lane_attached(1, {.rights = kMayRead});
    Executor::DirectLane writer(*partition.executor, 0), reader(*partition.executor, 1);
    LoanName lent;
    Result result;
    Op set = make(OpCode::kSet, "key", "value");
    set.hash = hash_key(set.key, 5);
    set.exptime = 10;
    REQUIRE(reader.execute(set, result, lent));
    CHECK(result.code == ResultCode::kForbidden);
    REQUIRE(writer.execute(set, result, lent));
    Op get = make(OpCode::kGet, "key");
    get.hash = set.hash;
    REQUIRE(reader.execute(get, result, lent));
    CHECK(result.code == ResultCode::kHit);
    partition.clock.advance_ns(11'000'000'000);
    partition.executor->end_round();
    REQUIRE(reader.execute(get, result, lent));
    CHECK(result.code == ResultCode::kMiss);
  }

  TEST_CASE("a long value that an op finds at once is lent, or is a part of what there is") {
    Partition partition;
    Executor::DirectLane direct(*partition.executor, 0);
    const std::string value(50'000, 'v');
    LoanName lent;
    Result result;
    Op op = make(OpCode::kSet, "key", value);
    op.hash = hash_key(op.key, 5);
    REQUIRE(direct.execute(op, result, lent));
    op.code = OpCode::kGet;
    REQUIRE(direct.execute(op, result, lent));
    REQUIRE(lent.loan != nullptr);
    REQUIRE(Loan::take(lent));
    CHECK(lent.loan->length() == value.size());
    CHECK(lent.loan->pieces().front() == std::string_view(value).substr(0, lent.loan->pieces().front().size()));
    lent.loan->give_back();
    // More than the store lends.
    const std::string huge(1'000'000, 'h');
    partition.run(part(1, 0, 1'000'000, huge, "huge"));
    Op commit = with_id(OpCode::kCommit, 1, "huge");
    REQUIRE(partition.code(commit) == ResultCode::kStored);
    op = make(OpCode::kGet, "huge");
    op.hash = hash_key(op.key, 5);
    lent = {};
    std::vector<Loan*> all;
    for (int i = 0; i < 100'000 && (i == 0 || lent.loan != nullptr); ++i) {
      lent = {};
      partition.executor->end_round();
      REQUIRE(direct.execute(op, result, lent));
      if (lent.loan != nullptr && Loan::take(lent)) all.push_back(lent.loan);
    }
    CHECK(lent.loan == nullptr);
    CHECK(result.further.empty());
    CHECK(result.total_length == huge.size());
    CHECK(result.value == std::string_view(huge).substr(0, result.value.size()));
    CHECK_FALSE(result.value.empty());
    for (Loan* const loan : all) loan->give_back();
  }

  TEST_CASE("a client of the partition's thread fills parts in itself, before, between and behind others") {
    Partition partition;
    const std::string value(200'000, 'v');
    const auto total = static_cast<uint32_t>(value.size());
    const auto fill_in = [&](uint32_t offset, uint32_t length) {
      const Op op = part(1, offset, total, "");
      PartRoom room;
      REQUIRE(Executor::DirectLane(*partition.executor, 0).begin_part(op, 100'000, room));
      CHECK(room.length == std::min(100'000u, total - offset));
      uint32_t left = length;
      for (size_t i = 0; i < room.count && left > 0; ++i) {
        const size_t filled =
            std::string_view(value).substr(0, left).copy(room.pieces[i].data(), room.pieces[i].size());
        left -= static_cast<uint32_t>(filled);
      }
      Executor::DirectLane(*partition.executor, 0).end_part(op, length);
    };
    fill_in(0, 0);
    fill_in(0, 70'000);
    CHECK(partition.code(part(1, 70'000, total, value.substr(0, 1000))) == ResultCode::kOk);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss);
    fill_in(71'000, 99'000);
    fill_in(170'000, 30'000);
    CHECK(partition.executor->counters().received_in_place == 199'000);
    CHECK(partition.code(with_id(OpCode::kCommit, 1)) == ResultCode::kStored);
    CHECK(partition.executor->store().counts().items == 1);
    std::string got;
    while (got.size() < total) {
      Op chunk = make(OpCode::kChunk, "key");
      chunk.offset = static_cast<uint32_t>(got.size());
      chunk.length = 60'000;
      chunk.version = partition.run(make(OpCode::kGet, "key")).version;
      got += partition.run(chunk).value;
    }
    CHECK(got == value);
  }

  TEST_CASE("what could not be taken as an op gets no room to fill in; nor does what others hold, until it is an op") {
    Partition partition(2, 0);
    Executor::DirectLane lane(*partition.executor, 0);
    PartRoom room;
    std::string key = "key";
    while (partition_of(hash_key(key, 5), 2) != 1) key += "y";
    CHECK_MESSAGE(!lane.begin_part(part(1, 0, 6, "", key), 6, room), "another partition's");
    while (partition_of(hash_key(key, 5), 2) != 0) key += "y";
    CHECK_MESSAGE(!lane.begin_part(part(1, 3, 6, "", key), 6, room), "no first part");
    CHECK_MESSAGE(!lane.begin_part(part(1, 0, 2 << 20, "", key), 6, room), "too large");
    REQUIRE(lane.begin_part(part(2, 0, 6, "", key), 100, room));
    CHECK_MESSAGE(room.length == 6, "no more than the value has");
    lane.end_part(part(2, 0, 6, "", key), 3);
    CHECK_MESSAGE(!lane.begin_part(part(2, 4, 6, "", key), 6, room), "a gap");
    CHECK_MESSAGE(partition.code(part(2, 3, 6, "def", key)) == ResultCode::kOk, "it is not spoilt by that");
    CHECK_MESSAGE(!lane.begin_part(part(2, 6, 7, "", key), 6, room), "another length");
    CHECK(partition.code(with_id(OpCode::kCommit, 2, key)) == ResultCode::kStored);
    partition.executor->lane_dropped(1);
    partition.executor->lane_attached(1, {.rights = 0});
    CHECK_MESSAGE(!Executor::DirectLane(*partition.executor, 1).begin_part(part(1, 0, 6, "", key), 6, room),
                  "no right to write");
  }

  TEST_CASE("direct parts that come before earlier commits of their lane spoil nothing, and take nobody's room") {
    Partition partition;
    Executor::DirectLane lane(*partition.executor, 0), other(*partition.executor, 1);
    const std::string value(500'000, 'v');
    const auto total = static_cast<uint32_t>(value.size());
    const auto fill_in = [&](Executor::DirectLane& by, const std::string& key, uint32_t id) {
      uint32_t sent = 0;
      for (PartRoom room; by.begin_part(part(id, sent, total, "", key), total, room); room = {}) {
        for (size_t i = 0; i < room.count; ++i) std::ranges::fill(room.pieces[i], 'v');
        by.end_part(part(id, sent, total, "", key), room.length);
        sent += room.length;
        if (sent == total) break;
      }
      return sent;
    };
    CHECK(fill_in(other, "other", 1) == total);
    // As many as the lane may have; then one more, before any of them is committed.
    uint32_t last = 1;
    while (fill_in(lane, "key" + std::to_string(last), last) == total) ++last;
    CHECK(last > 2);
    for (uint32_t id = 1; id < last; ++id)
      CHECK(partition.code(with_id(OpCode::kCommit, id, "key" + std::to_string(id))) == ResultCode::kStored);
    const std::string late = "key" + std::to_string(last);
    for (uint32_t offset = 0; offset < total; offset += 50'000) {
      CHECK(partition.code(part(last, offset, total, value.substr(0, 50'000), late)) == ResultCode::kOk);
    }
    CHECK(partition.code(with_id(OpCode::kCommit, last, late)) == ResultCode::kStored);
    CHECK(partition.code(with_id(OpCode::kCommit, 1, "other"), 1) == ResultCode::kStored);
    CHECK(partition.executor->counters().uploads_gave_way == 0);
  }

  TEST_CASE("who fills in a byte now and then is as slow as who sends nothing") {
    Partition partition;
    Executor::DirectLane lane(*partition.executor, 0);
    const auto fill_in = [&](uint32_t offset, uint32_t length) {
      PartRoom room;
      if (!lane.begin_part(part(1, offset, 100'000, ""), 100'000, room)) return false;
      lane.end_part(part(1, offset, 100'000, ""), length);
      return true;
    };
    CHECK(fill_in(0, 10'000));
    for (uint32_t second = 1; second < 31; ++second) {
      partition.clock.advance_ns(1'000'000'000);
      CHECK(fill_in(9'999 + second, second < 30 ? 1 : 0) == (second < 30));
    }
    CHECK(fill_in(0, 10'000));
    for (uint32_t second = 1; second < 8; ++second) {
      partition.clock.advance_ns(10'000'000'000);
      CHECK(fill_in(10'000 * second, 10'000));
    }
  }

  TEST_CASE("uploads of two lanes are apart, whatever ids they chose") {
    Partition partition;
    partition.run(part(1, 0, 2, "aa", "a"), 0);
    partition.run(part(1, 0, 2, "bb", "b"), 1);
    CHECK(partition.code(with_id(OpCode::kCommit, 1, "b"), 1) == ResultCode::kStored);
    CHECK(partition.code(with_id(OpCode::kCommit, 1, "a"), 0) == ResultCode::kStored);
    CHECK(partition.run(make(OpCode::kGet, "a")).value == "aa");
    CHECK(partition.run(make(OpCode::kGet, "b")).value == "bb");
  }

  TEST_CASE("no lane can take the room of all uploads, and a detached lane's room is free again") {
    Partition partition(1, 0, uint64_t{16} << 20);
    const std::string large(700'000, 'x');
    const auto fill = [&](uint32_t lane) {
      uint32_t opened = 0;
      while (opened < 64 && partition.code(part(opened + 1, 0, 700'000, "x"), lane) == ResultCode::kOk) ++opened;
      return opened;
    };
    const uint32_t of_one = fill(0);
    CHECK(of_one >= 1);
    CHECK(of_one < 64);
    CHECK_MESSAGE(partition.code(part(1, 0, 700'000, "x"), 1) == ResultCode::kOk, "another lane still has room");
    uint32_t lane = 2;
    while (lane < 100 && fill(lane) > 0) ++lane;
    CHECK(lane < 100);  // all of it is taken
    partition.executor->lane_dropped(0);
    partition.executor->lane_dropped(lane);
    partition.executor->lane_dropped(12'345);  // one that never did anything
    partition.executor->lane_attached(lane, {});
    CHECK(partition.code(part(1, 0, 700'000, large), lane) == ResultCode::kOk);
    CHECK(partition.code(with_id(OpCode::kCommit, 1), lane) == ResultCode::kStored);
  }

  TEST_CASE("where all room is taken, a lane with less of it gets room from the slowest upload of those with more") {
    Partition partition(1, 0, uint64_t{16} << 20);
    const std::string large(700'000, 'x');
    partition.run(make(OpCode::kSet, "key", "old"), 0);
    uint32_t lanes = 0;  // of one upload each
    while (lanes < 100 && partition.code(part(1, 0, 700'000, "x"), lanes) == ResultCode::kOk) ++lanes;
    REQUIRE(lanes < 100);
    const uint32_t other = 200;
    CHECK_MESSAGE(partition.code(part(1, 0, 700'000, "x"), other) == ResultCode::kOutOfMemory, "nobody is slow yet");
    partition.clock.advance_ns(Uploads::kSlowNs);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (lane != 3) CHECK(partition.code(part(1, 1, 700'000, "x"), lane) == ResultCode::kOk);
    }
    partition.run(make(OpCode::kSet, "key", "old"), other);
    CHECK(partition.code(part(2, 0, 700'000, large), other) == ResultCode::kOk);
    CHECK(partition.code(with_id(OpCode::kCommit, 2), other) == ResultCode::kStored);
    CHECK(partition.code(part(1, 1, 700'000, "x"), 3) == ResultCode::kNoUpload);
    CHECK(partition.code(part(1, 2, 700'000, "x"), 4) == ResultCode::kOk);
    CHECK_MESSAGE(partition.code(with_id(OpCode::kCommit, 1), 3) == ResultCode::kOutOfMemory,
                  "as memcached without memory");
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss);
  }

  TEST_CASE("a lane that holds as much as the others takes nothing from them") {
    Partition partition(1, 0, uint64_t{16} << 20);
    uint32_t lanes = 0;
    while (lanes < 100 && partition.code(part(1, 0, 700'000, "x"), lanes) == ResultCode::kOk) ++lanes;
    REQUIRE(lanes < 100);
    partition.clock.advance_seconds(1);
    CHECK(partition.code(part(2, 0, 700'000, "x"), 0) == ResultCode::kOutOfMemory);
    for (uint32_t lane = 0; lane < lanes; ++lane)
      CHECK(partition.code(part(1, 1, 700'000, "x"), lane) == ResultCode::kOk);
  }

  // Sends what lanes hold open but for the last byte, part by part, and more uploads, as long as anything is taken.
  struct Flood {
    static constexpr uint32_t kLength = 1'000'000;
    static constexpr uint32_t kPart = 100'000;
    Partition& partition;
    std::vector<egret::rpc::LaneId> lanes;
    uint32_t uploads_of_each;
    std::map<std::pair<egret::rpc::LaneId, uint32_t>, uint32_t> sent{};
    uint32_t next_id = 1;

    // Every upload gets a part; one that was dropped or refused is begun anew. Returns how many parts were taken.
    uint32_t go_on() {
      const std::string bytes(kPart, 'f');
      uint32_t taken = 0;
      for (const auto lane : lanes) {
        for (uint32_t i = 0; i < uploads_of_each; ++i) {
          uint32_t& offset = sent[{lane, i}];
          const uint32_t length = std::min(kPart, kLength - 1 - offset);
          if (length == 0) {
            ++taken;
            continue;
          }
          const uint32_t id = 100 + i;
          if (partition.code(part(id, offset, kLength, {bytes.data(), length}), lane) == ResultCode::kOk) {
            offset += length;
            ++taken;
          } else {
            partition.run(with_id(OpCode::kAbort, id), lane);
            offset = 0;
          }
        }
      }
      return taken;
    }
  };

  // An innocent lane stores a value of the largest size, part by part, while the flood goes on; no time passes.
  void check_stores_within(Flood & flood, egret::rpc::LaneId lane) {
    Partition& partition = flood.partition;
    const std::string value(Flood::kLength, 'v');
    for (uint32_t offset = 0; offset < value.size(); offset += Flood::kPart) {
      const auto taken = partition.code(
          part(7, offset, Flood::kLength, std::string_view(value).substr(offset, Flood::kPart), "innocent"), lane);
      REQUIRE_MESSAGE(taken == ResultCode::kOk, "at " << offset << ": " << static_cast<int>(taken));
      flood.go_on();
    }
    CHECK(partition.code(with_id(OpCode::kCommit, 7, "innocent"), lane) == ResultCode::kStored);
    const Result got = partition.run(make(OpCode::kGet, "innocent"), lane);
    const bool is_right = got.total_length == value.size() && value.starts_with(got.value);  // the rest is for chunks
    CHECK(is_right);
  }

  TEST_CASE("what lanes hold beyond one item of the largest size gives way at once to a lane that holds less") {
    Partition partition(1, 0, uint64_t{16} << 20);  // room for 8 MiB
    Flood flood{.partition = partition, .lanes = {0, 1, 2, 3, 4}, .uploads_of_each = 4};
    for (int i = 0; i < 20; ++i) flood.go_on();
    const uint64_t before = partition.executor->counters().uploads_gave_way;
    for (int round = 0; round < 3; ++round) check_stores_within(flood, 200);
    CHECK(partition.executor->counters().uploads_gave_way > before);
    CHECK_MESSAGE(flood.go_on() >= flood.lanes.size(), "each of them goes on with what it has a right to");
  }

  TEST_CASE(
      "where few lanes share little memory, each has room for what it has a right to, and for a value it has whole") {
    Partition partition;  // 16 MiB, as each of four workers of a memcached without options has
    for (egret::rpc::LaneId lane = 4; lane < 256; ++lane) partition.executor->lane_dropped(lane);
    Flood flood{.partition = partition, .lanes = {0, 1, 2, 3}, .uploads_of_each = 2};
    for (int i = 0; i < 20; ++i) CHECK(flood.go_on() == 8);
    CHECK(partition.executor->counters().uploads_gave_way == 0);
  }

  TEST_CASE("the room for uploads is what the attached lanes have a right to, within half of the memory") {
    Partition partition;  // 16 MiB
    const auto room = [&] { return partition.executor->store().memory().upload_room; };
    CHECK(room() == 8u << 20);
    for (egret::rpc::LaneId lane = 3; lane < 256; ++lane) partition.executor->lane_dropped(lane);
    CHECK(room() == 6u << 20);
    for (egret::rpc::LaneId lane = 0; lane < 3; ++lane) partition.executor->lane_dropped(lane);
    CHECK(room() == 2u << 20);
    partition.executor->lane_attached(0, {});
    CHECK(room() == 2u << 20);
    for (egret::rpc::LaneId lane = 1; lane < 9; ++lane) partition.executor->lane_attached(lane, {.rights = kMayRead});
    CHECK_MESSAGE(room() == 2u << 20, "who may not write has no right to it");
    partition.executor->lane_attached(9, {.rights = kMayRead | kMayWrite});
    CHECK(room() == 4u << 20);
    for (egret::rpc::LaneId lane = 1; lane < 9; ++lane) partition.executor->lane_dropped(lane);
    CHECK(room() == 4u << 20);
  }

  TEST_CASE("where each lane of one user holds one item, and all of the room, another user's lane has room at once") {
    Partition partition(1, 0, uint64_t{64} << 20);
    partition.executor->set_share_of_user(100);
    Flood flood{.partition = partition, .lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, .uploads_of_each = 1};
    for (int i = 0; i < 20; ++i) flood.go_on();
    partition.executor->lane_dropped(201);
    partition.executor->lane_attached(201, {.user = 1});
    for (int round = 0; round < 3; ++round) check_stores_within(flood, 201);
    CHECK(flood.go_on() >= 6);
  }

  TEST_CASE("a lane has a limited number of them") {
    Partition partition;
    for (uint32_t id = 0; id < Uploads::kMostPerLane; ++id) {
      CHECK(partition.code(part(id, 0, 10, "x")) == ResultCode::kOk);
    }
    CHECK(partition.code(part(1000, 0, 10, "x")) == ResultCode::kOutOfMemory);
    CHECK(partition.code(part(1000, 0, 10, "x"), 1) == ResultCode::kOk);
  }

  TEST_CASE("an upload without a new part for 30 seconds is dropped, and one with is not") {
    Partition partition;
    partition.run(part(1, 0, 3, "a"));
    partition.run(part(2, 0, 3, "a"));
    partition.clock.advance_seconds(29);
    CHECK(partition.code(part(2, 1, 3, "b")) == ResultCode::kOk);
    partition.clock.advance_seconds(2);
    CHECK(partition.code(part(1, 1, 3, "b")) == ResultCode::kNoUpload);
    CHECK(partition.code(part(2, 2, 3, "c")) == ResultCode::kOk);
    CHECK(partition.code(with_id(OpCode::kCommit, 2)) == ResultCode::kStored);
  }

  TEST_CASE("a value that is too large is refused at its first part, and the commit answers so") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", "old"));
    CHECK(partition.code(part(1, 0, 2 << 20, "x")) == ResultCode::kTooLarge);
    CHECK(partition.code(with_id(OpCode::kCommit, 1)) == ResultCode::kTooLarge);
    CHECK_MESSAGE(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss,
                  "as memcached: the old value is gone");
  }
}

TEST_SUITE("chunks and pins") {
  Op chunk(uint64_t version, uint32_t offset, uint32_t length, bool pinned) {
    Op op = make(OpCode::kChunk, "key");
    op.version = version;
    op.offset = offset;
    op.length = length;
    op.options = pinned ? kPin : 0;
    return op;
  }

  TEST_CASE("a pinned version is read to its end, whatever becomes of the key; another one is changed") {
    Partition partition;
    const std::string old_value(2000, 'o');
    partition.run(make(OpCode::kSet, "key", old_value));
    Op get = make(OpCode::kGet, "key");
    get.options = kPin;
    const uint64_t version = partition.run(get).version;
    partition.run(make(OpCode::kSet, "key", std::string(2000, 'n')));
    const Result pinned = partition.run(chunk(version, 1990, 100, true));
    CHECK(pinned.code == ResultCode::kHit);
    CHECK(pinned.value == std::string(10, 'o'));
    CHECK(partition.code(chunk(version, 0, 10, false)) == ResultCode::kChanged);
    CHECK_MESSAGE(partition.code(chunk(version, 0, 10, true), 1) == ResultCode::kChanged, "a pin is its lane's");
    partition.run(make(OpCode::kDelete, "key"));
    CHECK(partition.code(chunk(version, 0, 10, true)) == ResultCode::kHit);
    SUBCASE("for a second") {
      partition.clock.advance_ns(Executor::kPinNs + 1);
      CHECK(partition.code(chunk(version, 0, 10, true)) != ResultCode::kHit);
    }
    SUBCASE("or until the lane goes") {
      partition.executor->lane_dropped(0);
      partition.executor->lane_attached(0, {});
      CHECK(partition.code(chunk(version, 0, 10, true)) != ResultCode::kHit);
    }
  }

  TEST_CASE("pins of one lane, however many, cost bounded memory and end in a second") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'o')));
    for (int i = 0; i < 2000; ++i) {
      Op get = make(OpCode::kGet, "key");
      get.options = kPin;
      CHECK(partition.code(get) == ResultCode::kHit);
      partition.run(make(OpCode::kSet, "key", std::string(100'000, static_cast<char>('a' + i % 26))));
    }
    partition.clock.advance_seconds(2);
    CHECK(partition.code(make(OpCode::kPing)) == ResultCode::kOk);
    CHECK(partition.code(make(OpCode::kSet, "other", std::string(900'000, 'x'))) == ResultCode::kStored);
  }

  TEST_CASE("a get that ends its item can be read to the end, however many were read just before") {
    Partition partition;  // its room for pins holds two of these values
    const std::string value(900'000, 'v');
    for (int i = 0; i < 20; ++i) {
      REQUIRE(partition.code(make(OpCode::kSet, "key", value)) == ResultCode::kStored);
      Op get = make(OpCode::kGet, "key");
      get.options = kPin | kTouch;
      get.exptime = -1;
      const Result first = partition.run(get);
      REQUIRE(first.code == ResultCode::kHit);
      for (uint32_t at = 0; at < value.size(); at += 100'000) {
        CHECK(partition.code(chunk(first.version, at, 100'000, true)) == ResultCode::kHit);
      }
    }
  }

  TEST_CASE("gets that touch one item again and again, and read it to its end, leave room for others") {
    Partition partition;  // its room for pins holds two of these values
    const std::string value(900'000, 'v');
    for (const std::string key : {"hot", "warm", "key"}) {
      REQUIRE(partition.code(make(OpCode::kSet, key, value)) == ResultCode::kStored);
      for (int i = 0; i < 3; ++i) {
        Op get = make(OpCode::kGet, key);
        get.options = kPin | kTouch;
        get.exptime = key == "key" ? -1 : 100;
        const Result first = partition.run(get);
        if (key == "key" && i > 0) break;
        REQUIRE(first.code == ResultCode::kHit);
        Op part = chunk(first.version, 0, 100'000, true);
        part.key = key;
        for (; part.offset < value.size(); part.offset += 100'000) CHECK(partition.code(part) == ResultCode::kHit);
      }
    }
  }

  TEST_CASE("what is kept of a value stays as it was, whatever is done to its key, until it is let go") {
    Partition partition;
    std::string value(100'000, 'o');
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>('a' + i % 23);
    partition.run(make(OpCode::kSet, "key", value));
    std::vector<std::string_view> kept;
    const auto read = [&](const Op& op) {
      const Result result = partition.run_in_place(op);
      REQUIRE(result.code == ResultCode::kHit);
      REQUIRE(partition.executor->keep(0, result));
      kept.push_back(result.value);
      kept.insert(kept.end(), result.further.begin(), result.further.end());
    };
    SUBCASE("by a get") {
      read(make(OpCode::kGet, "key"));
    }
    SUBCASE("by chunks of a pinned version, whose pin ends before") {
      Op get = make(OpCode::kGet, "key");
      get.options = kPin;
      const uint64_t version = partition.run(get).version;
      partition.run(make(OpCode::kSet, "key", "another"));
      read(chunk(version, 0, 60'000, true));
      read(chunk(version, 60'000, 40'000, true));
      partition.clock.advance_ns(Executor::kPinNs + 1);
      partition.run(make(OpCode::kPing));
    }
    SUBCASE("by a chunk of the present version") {
      const uint64_t version = partition.run(make(OpCode::kGet, "key")).version;
      read(chunk(version, 0, 100'000, false));
    }
    const std::string more(10'000, 'x');
    Op append = make(OpCode::kSet, "key", more);
    append.mode = SetMode::kAppend;
    partition.run(append);
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'y')));
    partition.run(make(OpCode::kDelete, "key"));
    // As much as pushes everything else out of memory.
    for (int i = 0; i < 400; ++i) {
      partition.run(make(OpCode::kSet, "other" + std::to_string(i), std::string(100'000, 'z')));
    }
    std::string whole;
    for (const std::string_view piece : kept) whole += piece;
    CHECK(whole == value);
    partition.executor->end_round();
    CHECK(partition.code(make(OpCode::kSet, "key", std::string(900'000, 'x'))) == ResultCode::kStored);
  }

  TEST_CASE("what is lent of a value stays as it was, whatever is done to its key, until it is given back") {
    Partition partition;
    std::string value(300'000, 'o');
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>('a' + i % 23);
    partition.run(make(OpCode::kSet, "key", value));
    const Result result = partition.run_in_place(make(OpCode::kGet, "key"));
    const LoanName name = partition.executor->lend(0, result);
    REQUIRE(name.loan != nullptr);
    REQUIRE(Loan::take(name));
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'y')));
    partition.run(make(OpCode::kDelete, "key"));
    // As much as pushes everything else out of memory.
    for (int i = 0; i < 400; ++i) {
      partition.run(make(OpCode::kSet, "other" + std::to_string(i), std::string(100'000, 'z')));
    }
    std::string whole;
    for (const std::string_view piece : name.loan->pieces()) whole += piece;
    CHECK(whole == value);
    name.loan->give_back();
    CHECK(partition.code(make(OpCode::kSet, "key", std::string(900'000, 'x'))) == ResultCode::kStored);
  }

  TEST_CASE("an idle partition looks for what was lent, and ends its pin when it has come back") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'o')));
    while (partition.executor->idle_step()) {
    }
    CHECK(partition.executor->upkeep_in_ns() == UINT64_MAX);
    const Result result = partition.run_in_place(make(OpCode::kGet, "key"));
    const LoanName name = partition.executor->lend(0, result);
    REQUIRE(Loan::take(name));
    CHECK(partition.executor->levels().lent_bytes == 100'000);
    CHECK(partition.executor->upkeep_in_ns() <= Executor::kLoanNs);
    name.loan->give_back();
    while (partition.executor->idle_step()) {
    }
    CHECK(partition.executor->levels().lent_bytes == 0);
    CHECK(partition.executor->upkeep_in_ns() == UINT64_MAX);
  }

  TEST_CASE("what nobody has taken is lent no more when its lane goes; what was taken stays") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'o')));
    const Result result = partition.run_in_place(make(OpCode::kGet, "key"), 3);
    const LoanName of_lane = partition.executor->lend(0, result);
    const LoanName taken = partition.executor->lend(0, result);
    const LoanName of_other = partition.executor->lend(0, partition.run_in_place(make(OpCode::kGet, "key"), 4));
    REQUIRE(Loan::take(taken));
    partition.executor->lane_dropped(3);
    CHECK_FALSE(Loan::take(of_lane));
    CHECK(taken.loan->length() == 100'000);
    CHECK(Loan::take(of_other));
    taken.loan->give_back();
    of_other.loan->give_back();
  }

  TEST_CASE("no more is lent than a share of the memory limit, until something comes back") {
    constexpr size_t kMemory = 32 << 20, kSize = 500'000;
    Partition partition(1, 0, kMemory);
    bool is_one_key = false;
    size_t most = kMemory / 2 / kSize;
    SUBCASE("of different values, half") {}
    SUBCASE("of one, 16 times all of it") {
      is_one_key = true;
      most = 16 * kMemory / kSize;
    }
    size_t number = 0;
    const auto lend = [&] {
      const std::string key = "key" + std::to_string(is_one_key ? 0 : number);
      if (!is_one_key || number == 0) partition.run(make(OpCode::kSet, key, std::string(kSize, 'o')));
      ++number;
      return partition.executor->lend(0, partition.run_in_place(make(OpCode::kGet, key)));
    };
    std::vector<LoanName> lent;
    for (LoanName next = lend(); next.loan != nullptr; next = lend()) {
      REQUIRE(Loan::take(next));
      lent.push_back(next);
    }
    CHECK(lent.size() <= most + 2);
    CHECK(lent.size() + 2 >= most);
    lent.back().loan->give_back();
    const LoanName next = lend();
    REQUIRE(Loan::take(next));
    lent.back() = next;
    for (const LoanName& each : lent) each.loan->give_back();
  }

  TEST_CASE("what is no value of a get, or expires as it is read, is not lent") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'o')));
    const uint64_t version = partition.run(make(OpCode::kGet, "key")).version;
    const auto is_lent = [&](const Op& op) {
      return partition.executor->lend(0, partition.run_in_place(op)).loan != nullptr;
    };
    CHECK_FALSE(is_lent(make(OpCode::kGet, "none")));
    CHECK_FALSE(is_lent(chunk(version, 0, 50'000, false)));
    Op without_value = make(OpCode::kGet, "key");
    without_value.options = kNoValue;
    CHECK_FALSE(is_lent(without_value));
    Op last = make(OpCode::kGet, "key");
    last.options = kTouch;
    last.exptime = -1;
    CHECK_FALSE(is_lent(last));
  }

  TEST_CASE("what may change, or is no value, is not kept; nor is more than a bounded number") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", std::string(100'000, 'o')));
    SUBCASE("a miss") {
      const Result miss = partition.run_in_place(make(OpCode::kGet, "none"));
      CHECK_FALSE(partition.executor->keep(0, miss));
    }
    SUBCASE("rows") {
      const Result rows = partition.run_in_place(make(OpCode::kStats));
      CHECK_FALSE(partition.executor->keep(0, rows));
    }
    SUBCASE("an item that expires as it is read") {
      Op get = make(OpCode::kGet, "key");
      get.options = kTouch;
      get.exptime = -1;
      const Result last = partition.run_in_place(get);
      CHECK_FALSE(partition.executor->keep(0, last));
    }
    SUBCASE("too many") {
      for (size_t i = 0; i < Executor::kMaxKept; ++i) {
        const Result hit = partition.run_in_place(make(OpCode::kGet, "key"));
        REQUIRE(partition.executor->keep(0, hit));
      }
      const Result hit = partition.run_in_place(make(OpCode::kGet, "key"));
      CHECK_FALSE(partition.executor->keep(0, hit));
      partition.executor->end_round();
      CHECK(partition.executor->keep(0, hit));
    }
  }

  TEST_CASE("a chunk past the end, or of nothing, is empty") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", "value"));
    const uint64_t version = partition.run(make(OpCode::kGet, "key")).version;
    CHECK(partition.run(chunk(version, 0xffff'ffff, 0xffff'ffff, false)).value.empty());
    CHECK(partition.run(chunk(version, 5, 1, false)).value.empty());
    CHECK(partition.run(chunk(version, 1, 0, false)).value.empty());
    CHECK(partition.run(chunk(version, 1, 0xffff'ffff, false)).value == "alue");
    CHECK(partition.code(chunk(version + 1, 0, 1, false)) == ResultCode::kChanged);
  }
}

TEST_SUITE("statistics") {
  std::map<uint32_t, uint64_t> rows_of(std::string_view value) {
    std::map<uint32_t, uint64_t> rows;
    for (; value.size() >= sizeof(StatRow); value.remove_prefix(sizeof(StatRow))) {
      StatRow row{};
      std::memcpy(&row, value.data(), sizeof row);
      CHECK_FALSE(rows.contains(row.id));
      rows[row.id] = row.value;
    }
    CHECK(value.empty());
    return rows;
  }
  uint64_t stat(Partition & partition, StatId id) {
    return rows_of(partition.run(make(OpCode::kStats)).value)[static_cast<uint32_t>(id)];
  }

  TEST_CASE("every row of the table is answered, and pages go on where the last one ended") {
    Partition partition;
    const auto all = rows_of(partition.run(make(OpCode::kStats)).value);
    for (const StatInfo& info : stat_table()) {
      CAPTURE(info.name);
      CHECK(all.contains(static_cast<uint32_t>(info.id)));
    }
    Op rest = make(OpCode::kStats);
    rest.version = 10;
    CHECK(rows_of(partition.run(rest).value).size() == all.size() - 10);
    rest.version = UINT64_MAX;
    const Result none = partition.run(rest);
    CHECK(none.code == ResultCode::kOk);
    CHECK(none.value.empty());
    CHECK_FALSE(none.is_partial());
  }

  TEST_CASE("figures are those of what was done, until they are reset") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", "v"));
    partition.run(make(OpCode::kGet, "key"));
    partition.run(make(OpCode::kGet, "none"));
    partition.clock.advance_seconds(90);
    CHECK(stat(partition, StatId::kCmdGet) == 2);
    CHECK(stat(partition, StatId::kGetMisses) == 1);
    CHECK(stat(partition, StatId::kCurrItems) == 1);
    CHECK(stat(partition, StatId::kUptime) == 90);
    CHECK(stat(partition, StatId::kPid) > 0);
    CHECK(stat(partition, StatId::kItemSizeMax) == 1 << 20);
    Op reset = make(OpCode::kAdmin);
    reset.group = static_cast<uint8_t>(AdminVerb::kResetStats);
    CHECK(partition.code(reset) == ResultCode::kOk);
    CHECK(stat(partition, StatId::kCmdGet) == 0);
    CHECK(stat(partition, StatId::kCurrItems) == 1);
  }

  TEST_CASE("a partition takes its share of the whole backend's memory limit, and says so") {
    uint64_t sum = 0;
    for (uint32_t number = 0; number < 3; ++number) {
      Partition partition(3, number);
      Op limit = make(OpCode::kAdmin);
      limit.group = static_cast<uint8_t>(AdminVerb::kMemoryLimit);
      CHECK(partition.code(limit) == ResultCode::kInvalid);
      const auto with = [&](uint64_t bytes) {
        static uint64_t kept;
        kept = bytes;
        limit.value = {reinterpret_cast<const char*>(&kept), sizeof kept};
        return limit;
      };
      CHECK(partition.code(with(25'000'000)) == ResultCode::kOk);
      sum += stat(partition, StatId::kLimitMaxbytes);
      CHECK(partition.code(with(1'000)) == ResultCode::kOutOfMemory);
      limit.value.remove_suffix(1);
      CHECK(partition.code(limit) == ResultCode::kInvalid);
    }
    CHECK(sum == 25'000'000);
  }

  TEST_CASE("the clock moves forward where that is allowed, and items expire by it") {
    const uint64_t minute = 60;
    Op move = make(OpCode::kAdmin);
    move.group = static_cast<uint8_t>(AdminVerb::kMoveClock);
    move.value = {reinterpret_cast<const char*>(&minute), sizeof minute};
    Partition usual;
    CHECK(usual.code(move) == ResultCode::kUnsupported);
    Partition partition(1, 0, 16 << 20, true);
    Op set = make(OpCode::kSet, "key", "v");
    set.exptime = 100;
    partition.run(set);
    CHECK(partition.code(move) == ResultCode::kOk);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kHit);
    CHECK(partition.code(move) == ResultCode::kOk);
    CHECK(partition.code(make(OpCode::kGet, "key")) == ResultCode::kMiss);
    const uint64_t eternity = UINT64_MAX;
    move.value = {reinterpret_cast<const char*>(&eternity), sizeof eternity};
    CHECK(partition.code(move) == ResultCode::kInvalid);
    move.value.remove_suffix(1);
    CHECK(partition.code(move) == ResultCode::kInvalid);
  }

  TEST_CASE("iterate gives what is there, page by page") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", "value"));
    Op iterate = make(OpCode::kIterate);
    std::string found;
    for (int pages = 0; iterate.version != kWalkOver; ++pages) {
      REQUIRE(pages < 1'000);
      const Result page = partition.run(iterate);
      REQUIRE(page.code == ResultCode::kOk);
      std::string_view records = page.value;
      for (Record record; take_record(records, record);) found += record.key;
      iterate.version = page.version;
    }
    CHECK(found == "key");
  }

  TEST_CASE("in checked builds the checker finds nothing wrong with a sound store; other builds do not support it") {
    Partition partition;
    partition.run(make(OpCode::kSet, "key", "v"));
    Op check = make(OpCode::kAdmin);
    check.group = static_cast<uint8_t>(AdminVerb::kCheck);
    const Result result = partition.run(check);
#ifdef EGRET_CHECKS
    CHECK(result.code == ResultCode::kOk);
    CHECK(result.value.empty());
#else
    CHECK(result.code == ResultCode::kUnsupported);
#endif
    check.group = 99;
    CHECK(partition.code(check) == ResultCode::kUnsupported);
  }

  TEST_CASE("an idle partition says when it has something to do, and does it") {
    Partition partition;
    CHECK_FALSE(partition.executor->idle_step());
    CHECK(partition.executor->upkeep_in_ns() == UINT64_MAX);
    Op set = make(OpCode::kSet, "key", "v");
    set.exptime = 30;
    partition.run(set);
    CHECK(partition.run(part(1, 0, 9, "1234")).code == ResultCode::kOk);
    while (partition.executor->idle_step()) {
    }
    uint64_t passed = 0;
    while (stat(partition, StatId::kCurrItems) > 0) {
      const uint64_t wait = partition.executor->upkeep_in_ns();
      REQUIRE(wait > 0);
      REQUIRE(wait <= 30'000'000'000);
      partition.clock.advance_ns(wait);
      passed += wait;
      REQUIRE(passed <= 60'000'000'000);
      while (partition.executor->idle_step()) {
      }
    }
    // The upload's end, too, was waited for.
    CHECK(partition.code(part(1, 4, 9, "56789")) == ResultCode::kNoUpload);
    CHECK(partition.executor->upkeep_in_ns() == UINT64_MAX);
  }

  TEST_CASE("size classes are told in the order of their ids, and a page goes on behind the last id") {
    Partition partition;
    for (const size_t length : {10, 100, 1000, 10'000}) {
      partition.run(make(OpCode::kSet, std::to_string(length), std::string(length, 'v')));
    }
    Op op = make(OpCode::kStats);
    op.group = static_cast<uint8_t>(StatGroup::kSizeClasses);
    const auto page = partition.run(op);
    CHECK(page.code == ResultCode::kOk);
    CHECK(page.value.size() == page.total_length);
    std::vector<StatRow> rows(page.value.size() / sizeof(StatRow));
    std::memcpy(rows.data(), page.value.data(), page.value.size());
    CHECK(std::ranges::is_sorted(rows, {}, &StatRow::id));
    uint64_t items = 0;
    for (const StatRow& row : rows)
      items += (row.id & 0xff) == static_cast<uint32_t>(ClassField::kNumber) ? row.value : 0;
    CHECK(items == 4);
    REQUIRE(rows.size() > 2);
    op.version = rows[1].id + uint64_t{1};
    CHECK(partition.run(op).value.size() == page.total_length - 2 * sizeof(StatRow));
    op.version = rows[2].id;
    CHECK(partition.run(op).value.size() == page.total_length - 2 * sizeof(StatRow));
    for (const uint64_t last : {uint64_t{rows.back().id} + 1, UINT64_MAX}) {
      op.version = last;
      const Result none = partition.run(op);
      CHECK(none.code == ResultCode::kOk);
      CHECK(none.value.empty());
      CHECK_FALSE(none.is_partial());
    }
  }

  TEST_CASE("groups and verbs that do not exist are unsupported") {
    Partition partition;
    Op op = make(OpCode::kStats);
    op.group = 2;
    CHECK(partition.code(op) == ResultCode::kUnsupported);
    op.code = OpCode::kAdmin;
    op.group = 200;
    CHECK(partition.code(op) == ResultCode::kUnsupported);
  }
}

TEST_SUITE("work") {
  TEST_CASE("a get and a set of a small value count as one unit each, statistics and dumps as many") {
    Partition partition;
    CHECK(partition.run(make(OpCode::kSet, "key", "v")).work == 0);
    CHECK(partition.run(make(OpCode::kGet, "key")).work == 0);
    CHECK(partition.run(make(OpCode::kPing)).work == 0);
    CHECK(partition.run(make(OpCode::kStats)).work >= 256);
    CHECK(partition.run(make(OpCode::kIterate)).work >= 32);
  }

  TEST_CASE("what copies a large value counts for its length") {
    Partition partition;
    const std::string piece(16 << 10, 'v');
    for (uint32_t at = 0; at < 512 << 10; at += 16 << 10) {
      REQUIRE(partition.code(part(1, at, 512 << 10, piece)) == ResultCode::kOk);
    }
    REQUIRE(partition.code(with_id(OpCode::kCommit, 1)) == ResultCode::kStored);
    Op pinning = make(OpCode::kGet, "key");
    pinning.options = kPin;
    partition.run(pinning);
    Op append = make(OpCode::kSet, "key", "more");
    append.mode = SetMode::kAppend;
    const Result appended = partition.run(append);
    CHECK(appended.code == ResultCode::kStored);
    CHECK(appended.work > 500);  // half a MiB
  }
}

TEST_SUITE("rights") {
  TEST_CASE("an op that the lane's session has no right to is refused and does nothing; other lanes are not touched") {
    Partition partition;
    partition.executor->lane_attached(1, {.rights = kMayRead});
    partition.executor->lane_attached(2, {.rights = kMayRead, .knows_rights = false});
    CHECK(partition.code(make(OpCode::kSet, "key", "v"), 1) == ResultCode::kForbidden);
    CHECK(partition.code(make(OpCode::kSet, "key", "v"), 2) == ResultCode::kUnsupported);
    CHECK(partition.code(make(OpCode::kGet, "key"), 1) == ResultCode::kMiss);
    CHECK(partition.code(make(OpCode::kSet, "key", "v"), 0) == ResultCode::kStored);
    CHECK(partition.code(make(OpCode::kFlush), 1) == ResultCode::kForbidden);
    CHECK(partition.code(make(OpCode::kGet, "key"), 1) == ResultCode::kHit);
    partition.executor->lane_dropped(0);
    CHECK_MESSAGE(partition.code(make(OpCode::kGet, "key"), 0) == ResultCode::kForbidden, "who is gone has none");
  }
}

TEST_SUITE("shares of users") {
  // There is room for 2 MiB of uploads. A user may hold half of it while another user has sessions.
  struct Shared : Partition {
    explicit Shared(uint64_t memory = 4 << 20) : Partition(1, 0, memory) {
      for (egret::rpc::LaneId lane = 0; lane < 256; ++lane) executor->lane_dropped(lane);
      for (egret::rpc::LaneId lane = 0; lane < 3; ++lane) executor->lane_attached(lane, {.user = lane == kOther});
      executor->set_share_of_user(50);
    }
    static constexpr egret::rpc::LaneId kOther = 2;  // lanes 0 and 1 are of one user
  };

  TEST_CASE("one user's sessions together hold no more uploads than its share, while others have sessions") {
    Shared partition;
    CHECK(partition.code(part(1, 0, 700'000, "x"), 0) == ResultCode::kOk);
    CHECK(partition.code(part(1, 0, 700'000, "x"), 1) == ResultCode::kOutOfMemory);
    CHECK(partition.executor->counters().uploads_over_share == 1);
    CHECK(partition.code(part(1, 0, 700'000, "x"), Shared::kOther) == ResultCode::kOk);
    partition.run(with_id(OpCode::kAbort, 1), 0);
    CHECK(partition.code(part(2, 0, 700'000, "x"), 1) == ResultCode::kOk);
    CHECK(partition.executor->counters().uploads_over_share == 1);
  }

  TEST_CASE("what an upload holds is free again when it is spoilt, overdue, committed, or its lane goes") {
    Shared partition;
    const auto take = [&] { return partition.code(part(1, 0, 700'000, "x"), 0); };
    const auto is_free = [&] {
      const bool opened = partition.code(part(9, 0, 700'000, "x"), 1) == ResultCode::kOk;
      partition.run(with_id(OpCode::kAbort, 9), 1);
      return opened;
    };
    REQUIRE(take() == ResultCode::kOk);
    CHECK_FALSE(is_free());
    partition.run(part(1, 5, 700'000, "gap"), 0);
    CHECK(is_free());
    partition.run(with_id(OpCode::kCommit, 1), 0);
    REQUIRE(take() == ResultCode::kOk);
    CHECK_FALSE(is_free());
    partition.clock.advance_ns(Uploads::kIdleNs + 1);
    CHECK(is_free());
    REQUIRE(take() == ResultCode::kOk);
    CHECK_FALSE(is_free());
    partition.executor->lane_dropped(0);
    CHECK(is_free());
  }

  TEST_CASE("a user that is alone may hold all of the room") {
    Shared partition;
    partition.executor->lane_dropped(Shared::kOther);
    CHECK(partition.code(part(1, 0, 700'000, "x"), 0) == ResultCode::kOk);
    CHECK(partition.code(part(1, 0, 700'000, "x"), 1) == ResultCode::kOk);
  }

  TEST_CASE("a version is not kept for a user that holds its share of them; another user's is") {
    Shared partition(16 << 20);  // room for 2 MiB of pins
    const std::string value(700'000, 'v');
    const auto pinned = [&](const std::string& key, egret::rpc::LaneId lane) {
      partition.run(make(OpCode::kSet, key, value), lane);
      Op get = make(OpCode::kGet, key);
      get.options = kPin;
      const uint64_t version = partition.run(get, lane).version;
      partition.run(make(OpCode::kDelete, key), lane);
      Op chunk = make(OpCode::kChunk, key);
      chunk.options = kPin;
      chunk.version = version;
      chunk.length = 10;
      return partition.code(chunk, lane) == ResultCode::kHit;
    };
    CHECK(pinned("a", 0));
    CHECK_FALSE(pinned("b", 1));
    CHECK(partition.executor->counters().pins_over_share == 1);
    CHECK(pinned("c", Shared::kOther));
    partition.clock.advance_ns(Executor::kPinNs + 1);
    CHECK(pinned("d", 1));
  }
}
