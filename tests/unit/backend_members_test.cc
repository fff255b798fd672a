// What a partition does when the members of its pool change: fills that bring nothing back, and the removal of what was
// another's.
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
#include "pool/membership_code.h"

using namespace egret::backend;
using namespace egret::op;
using egret::base::ManualClock;
using egret::pool::Member;
using egret::pool::PlacementRule;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr PlacementRule kRule = PlacementRule::kKetama;

std::string bytes_of(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

Op make(OpCode code, std::string_view key = "", std::string_view value = "") {
  Op op;
  op.code = code;
  op.key = key;
  op.value = value;
  return op;
}

Op admin(AdminVerb verb, std::string_view value) {
  Op op = make(OpCode::kAdmin, "", value);
  op.group = static_cast<uint8_t>(verb);
  return op;
}

struct Partition {
  explicit Partition(const std::string& warm_file = "", uint64_t memory = 16 << 20) {
    auto made =
        Executor::create({.memory = memory, .item_size_max = 1 << 20, .hash_seed = 5, .warm_file = warm_file}, clock);
    REQUIRE_MESSAGE(made.is_ok(), made.status().message());
    executor = std::move(made.value());
    executor->lane_attached(0, {});
    clock.advance_seconds(1);  // a store that was kept begins with its first pass
    executor->lane_attached(1, {.rights = kMayRead | kMayWrite});
    executor->lane_attached(2, {.rights = kMayFlush});
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
  ResultCode warm(uint64_t seconds) { return code(admin(AdminVerb::kWarm, bytes_of(seconds))); }
  ResultCode set(std::string_view key, std::string_view text, SetMode mode = SetMode::kSet) {
    Op op = make(OpCode::kSet, key, text);
    op.mode = mode;
    return code(op);
  }
  ResultCode fill(std::string_view key, std::string_view text) { return set(key, text, SetMode::kFill); }
  ResultCode erase(std::string_view key) { return code(make(OpCode::kDelete, key)); }
  std::string get(std::string_view key) {
    const Result result = run(make(OpCode::kGet, key));
    return result.code == ResultCode::kHit ? std::string(result.value) : "-";
  }
  ResultCode upload_fill(std::string_view key, std::string_view text) {
    Op part = make(OpCode::kUpload, key, text);
    part.upload_id = 9;
    part.length = static_cast<uint32_t>(text.size());
    REQUIRE(code(part) == ResultCode::kOk);
    Op commit = make(OpCode::kCommit, key);
    commit.upload_id = 9;
    commit.mode = SetMode::kFill;
    return code(commit);
  }

  ManualClock clock;
  std::unique_ptr<Executor> executor;
  std::string value;
};

// Members "m0", "m1", ... of these numbers.
std::vector<Member> members_of(const std::set<int>& numbers) {
  std::vector<Member> members;
  for (const int number : numbers) {
    const std::string name = "m" + std::to_string(number);
    members.push_back({"rdma:" + name, name, 1});
  }
  return members;
}

// A pool as member `mine` sees it.
struct Seen {
  Seen(const std::set<int>& numbers, int mine) : members(members_of(numbers)), placement(kRule, members) {
    const auto at = numbers.find(mine);
    index = at == numbers.end() ? egret::pool::kNoMember : static_cast<size_t>(std::distance(numbers.begin(), at));
    bytes = encode_membership(kRule, members, index);
    number = egret::pool::number_of_membership(bytes);
  }
  bool owns(std::string_view key) const { return placement.member_of(key) == index; }

  std::vector<Member> members;
  egret::pool::Placement placement;
  size_t index = 0;
  std::string bytes;
  uint64_t number = 0;
};

std::string member_value(uint64_t from, uint64_t to, uint32_t length, uint32_t offset, std::string_view part) {
  const MemberChangeHead head{from, to, length, offset};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head).append(part);
}

// As a proxy tells of a change: asks, sends parts, and asks until it is over.
ResultCode tell(Partition& partition, const Seen& from, const Seen& to, uint32_t part_size = 50) {
  const bool joins = from.index == egret::pool::kNoMember;
  const auto length = static_cast<uint32_t>(joins ? 0 : from.bytes.size());
  uint32_t offset = 0;
  std::string part;
  for (int i = 0; i < 10'000; ++i) {
    const std::string value = member_value(from.number, to.number, length, offset, part);
    const ResultCode code = partition.code(admin(AdminVerb::kMember, value));
    offset += static_cast<uint32_t>(part.size());
    part.clear();
    if (code == ResultCode::kNoUpload) offset = 0;
    if (code == ResultCode::kNoUpload || code == ResultCode::kStored) part = from.bytes.substr(offset, part_size);
    if (code != ResultCode::kNoUpload && code != ResultCode::kStored && code != ResultCode::kNotStored) return code;
  }
  return ResultCode::kTimedOut;
}

ResultCode tell_start(Partition& partition, const Seen& to) {
  return partition.code(admin(AdminVerb::kMember, member_value(0, to.number, 0, 0, "")));
}

}  // namespace

TEST_SUITE("fills") {
  TEST_CASE("a fill stores what is missing, while the phase lasts, with its flags and time") {
    Partition partition;
    CHECK(partition.fill("a", "old") == ResultCode::kNotStored);
    REQUIRE(partition.warm(60) == ResultCode::kOk);
    Op fill = make(OpCode::kSet, "a", "old");
    fill.mode = SetMode::kFill;
    fill.client_flags = 77;
    fill.exptime = 30;
    CHECK(partition.code(fill) == ResultCode::kStored);
    const Result got = partition.run(make(OpCode::kGet, "a"));
    CHECK(got.value == "old");
    CHECK(got.client_flags == 77);
    CHECK(partition.fill("a", "older") == ResultCode::kNotStored);
    CHECK(partition.get("a") == "old");
    partition.clock.advance_seconds(31);
    CHECK(partition.get("a") == "-");
    CHECK(partition.fill("a", "again") == ResultCode::kStored);
    CHECK(partition.warm(0) == ResultCode::kOk);
    CHECK(partition.fill("b", "old") == ResultCode::kNotStored);
    CHECK(partition.executor->counters().fills == 2);
    CHECK(partition.executor->counters().fills_refused == 3);
  }

  TEST_CASE("of what was set, deleted, touched, counted or flushed since the phase began nothing is filled") {
    Partition partition;
    partition.set("number", "5");
    partition.set("touched", "x");
    REQUIRE(partition.warm(60) == ResultCode::kOk);
    partition.set("set", "new");
    CHECK(partition.erase("set") == ResultCode::kDeleted);
    CHECK(partition.fill("set", "old") == ResultCode::kNotStored);
    CHECK(partition.erase("missing") == ResultCode::kMiss);
    CHECK(partition.fill("missing", "old") == ResultCode::kNotStored);
    Op touch = make(OpCode::kGet, "touched");
    touch.options = kTouch;
    touch.exptime = -1;
    CHECK(partition.code(touch) == ResultCode::kHit);
    CHECK(partition.fill("touched", "old") == ResultCode::kNotStored);
    Op incr = make(OpCode::kArith, "number");
    incr.delta = 1;
    CHECK(partition.code(incr) == ResultCode::kNumber);
    CHECK(partition.upload_fill("number", "4") == ResultCode::kNotStored);
    CHECK(partition.get("number") == "6");
    CHECK(partition.set("large", std::string(2 << 20, 'x')) == ResultCode::kTooLarge);
    CHECK(partition.fill("large", "old") == ResultCode::kNotStored);
    CHECK(partition.fill("another", "old") == ResultCode::kStored);
    CHECK(partition.code(make(OpCode::kFlush)) == ResultCode::kOk);
    CHECK(partition.fill("yet another", "old") == ResultCode::kNotStored);
  }

  TEST_CASE("what found no item, and changed nothing, may be filled and executed again") {
    Partition partition;
    REQUIRE(partition.warm(60) == ResultCode::kOk);
    CHECK(partition.set("a", "x", SetMode::kReplace) == ResultCode::kNotStored);
    CHECK(partition.set("a", "x", SetMode::kAppend) == ResultCode::kNotStored);
    Op incr = make(OpCode::kArith, "a");
    incr.delta = 2;
    CHECK(partition.code(incr) == ResultCode::kMiss);
    Op cas = make(OpCode::kSet, "a", "x");
    cas.options = kCompareCas;
    CHECK(partition.code(cas) == ResultCode::kMiss);
    CHECK(partition.fill("a", "40") == ResultCode::kStored);
    CHECK(partition.run(incr).number == 42);
  }

  TEST_CASE("large values are filled by uploads") {
    Partition partition;
    const std::string large(100'000, 'v');
    CHECK(partition.upload_fill("a", large) == ResultCode::kNotStored);
    REQUIRE(partition.warm(60) == ResultCode::kOk);
    CHECK(partition.upload_fill("a", large) == ResultCode::kStored);
    CHECK(partition.upload_fill("a", large) == ResultCode::kNotStored);
  }

  TEST_CASE("a fill that is too large, or an ms, does not remove what is there") {
    Partition partition;
    partition.set("a", "there");
    REQUIRE(partition.warm(60) == ResultCode::kOk);
    const std::string too_large(2 << 20, 'x');
    Op fill = make(OpCode::kSet, "a", too_large);
    fill.mode = SetMode::kFill;
    fill.options = kWantMeta;
    CHECK(partition.code(fill) == ResultCode::kTooLarge);
    CHECK(partition.get("a") == "there");
  }

  TEST_CASE("a delayed flush refuses all fills, whether it is sent before or after the phase began") {
    for (const bool before : {true, false}) {
      Partition partition;
      Op flush = make(OpCode::kFlush);
      flush.exptime = 20;
      if (before) partition.code(flush);
      REQUIRE(partition.warm(60) == ResultCode::kOk);
      if (!before) partition.code(flush);
      partition.clock.advance_seconds(21);
      CHECK(partition.fill("a", "old") == ResultCode::kNotStored);
    }
  }

  TEST_CASE("a phase is prolonged, ends by itself, and gives its memory back; one too long is refused") {
    Partition partition;
    CHECK(partition.warm(kMostWarmSeconds + 1) == ResultCode::kInvalid);
    CHECK(partition.code(admin(AdminVerb::kWarm, "short")) == ResultCode::kInvalid);
    REQUIRE(partition.warm(10) == ResultCode::kOk);
    CHECK(partition.executor->levels().takes_fills == 1);
    CHECK(partition.executor->levels().tombstone_bytes == 16 << 20 >> 7);
    partition.clock.advance_seconds(8);
    REQUIRE(partition.warm(10) == ResultCode::kOk);
    partition.clock.advance_seconds(8);
    CHECK(partition.fill("a", "old") == ResultCode::kStored);
    partition.clock.advance_seconds(3);
    CHECK(partition.fill("b", "old") == ResultCode::kNotStored);
    CHECK(partition.executor->levels().takes_fills == 0);
    CHECK(partition.executor->upkeep_in_ns() <= 60 * kSecond);
    partition.clock.advance_seconds(60);
    partition.executor->begin_round();
    CHECK(partition.executor->levels().tombstone_bytes == 0);
  }

  // The model: the value of each key here and at its owner before, and which keys were changed since the phase began.
  TEST_CASE("whatever happens, a fill never brings back what was changed or deleted after the phase began") {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      Partition partition("", seed % 2 == 0 ? 16 << 20 : 3 << 20);  // the smaller one evicts
      std::map<std::string, std::string> before;                    // at the owner before: what is read there
      std::set<std::string> changed;
      std::set<std::string> replaced;  // set or deleted
      size_t filled = 0;
      for (int i = 0; i < 400; ++i) before["k" + std::to_string(i)] = "before " + std::to_string(i);
      REQUIRE(partition.warm(600) == ResultCode::kOk);
      const std::string bulk(30'000, 'b');
      for (int step = 0; step < 6'000; ++step) {
        const std::string key = "k" + std::to_string(random() % 400);
        switch (random() % 7) {
          case 0:
            REQUIRE(partition.set(key, "new " + std::to_string(step)) == ResultCode::kStored);
            changed.insert(key);
            replaced.insert(key);
            break;
          case 1:
            partition.erase(key);
            changed.insert(key);
            replaced.insert(key);
            break;
          case 2: {
            Op touch = make(OpCode::kGet, key);
            touch.options = kTouch;
            touch.exptime = static_cast<int64_t>(random() % 3) - 1;
            if (partition.code(touch) == ResultCode::kHit) changed.insert(key);
            break;
          }
          case 3:
            if (random() % 20 == 0) partition.set("bulk" + std::to_string(step), bulk);
            partition.clock.advance_ns(random() % 50'000'000);
            break;
          default: {
            const ResultCode code =
                random() % 4 == 0 ? partition.upload_fill(key, before[key]) : partition.fill(key, before[key]);
            if (code == ResultCode::kStored) {
              REQUIRE_MESSAGE(!changed.contains(key), key);
              ++filled;
            }
          }
        }
        if (replaced.contains(key)) REQUIRE(!partition.get(key).starts_with("before"));
      }
      CHECK(filled > 100);
    }
  }
}

TEST_SUITE("members") {
  TEST_CASE("what was another's among the members before goes, in parts of any size; repeated, nothing happens") {
    for (const uint32_t part_size : {1u, 7u, 50u, 4096u}) {
      Partition partition;
      const Seen three({0, 1, 2}, 0);
      const Seen four({0, 1, 2, 3}, 0);
      REQUIRE(tell_start(partition, four) == ResultCode::kOk);
      for (int i = 0; i < 1'000; ++i) partition.set("k" + std::to_string(i), "v");
      CHECK(tell(partition, four, three, part_size) == ResultCode::kOk);
      int wrong = 0;
      int kept = 0;
      for (int i = 0; i < 1'000; ++i) {
        const std::string key = "k" + std::to_string(i);
        const bool is_there = partition.get(key) == "v";
        wrong += is_there == four.owns(key) ? 0 : 1;
        kept += is_there ? 1 : 0;
      }
      CHECK(wrong == 0);
      CHECK(kept > 100);
      CHECK(partition.executor->counters().purged == static_cast<uint64_t>(1'000 - kept));
      partition.set("k0", "v");
      partition.set("k1", "v");
      partition.set("k2", "v");
      CHECK(tell(partition, four, three, part_size) == ResultCode::kOk);
      CHECK(partition.get("k0") + partition.get("k1") + partition.get("k2") == "vvv");
    }
  }

  TEST_CASE("a backend that knows of no membership removes what was another's; one of other members nothing") {
    const Seen two({0, 1}, 0);
    const Seen three({0, 1, 2}, 0);
    const Seen others({0, 7, 8}, 0);
    Partition unknown;
    Partition of_others;
    REQUIRE(tell_start(of_others, others) == ResultCode::kOk);
    std::string moved = "k0";
    for (int i = 0; two.owns(moved); ++i) moved = "k" + std::to_string(i);
    unknown.set(moved, "v");
    of_others.set(moved, "v");
    CHECK(tell(unknown, two, three) == ResultCode::kOk);
    CHECK(unknown.get(moved) == "-");
    CHECK(tell(of_others, two, three) == ResultCode::kExists);
    CHECK(of_others.get(moved) == "v");
    CHECK_MESSAGE(tell(of_others, others, three) == ResultCode::kOk, "it is still theirs");
  }

  TEST_CASE("a backend that joins removes everything, once within an hour, whatever it belonged to") {
    Partition partition;
    const Seen three({0, 1, 2}, 3);
    const Seen four({0, 1, 2, 3}, 3);
    REQUIRE(three.index == egret::pool::kNoMember);
    partition.set("a", "stale");
    CHECK(tell(partition, three, four) == ResultCode::kOk);
    CHECK(partition.get("a") == "-");
    partition.set("a", "new");
    CHECK(tell(partition, three, four) == ResultCode::kOk);
    CHECK_MESSAGE(partition.get("a") == "new", "another proxy told of the same");
    // It has left without being told, and joins again.
    partition.clock.advance_ns(MemberChange::kJoinsOnceNs);
    CHECK(tell(partition, three, four) == ResultCode::kOk);
    CHECK(partition.get("a") == "-");
    // It is told when it leaves: then it need not wait.
    partition.set("a", "stale");
    CHECK(tell(partition, four, three) == ResultCode::kOk);
    partition.set("a", "stale");
    CHECK(tell(partition, three, four) == ResultCode::kOk);
    CHECK(partition.get("a") == "-");
    // It belonged to others.
    REQUIRE(tell_start(partition, Seen({3, 9}, 3)) == ResultCode::kOk);
    partition.set("a", "stale");
    CHECK(tell(partition, three, four) == ResultCode::kOk);
    CHECK(partition.get("a") == "-");
  }

  TEST_CASE("each telling of the same joining prolongs its hour: a slow rollout empties the backend once") {
    Partition partition;
    const Seen three({0, 1, 2}, 3);
    const Seen four({0, 1, 2, 3}, 3);
    REQUIRE(tell(partition, three, four) == ResultCode::kOk);
    partition.set("a", "new");
    for (int i = 0; i < 5; ++i) {
      partition.clock.advance_ns(MemberChange::kJoinsOnceNs / 2);
      CHECK(tell(partition, three, four) == ResultCode::kOk);
    }
    CHECK(partition.get("a") == "new");
  }

  TEST_CASE("a proxy that starts with other members does not stand in the way of the change to them, nor of another") {
    const Seen three({0, 1, 2}, 0);
    const Seen four({0, 1, 2, 3}, 0);
    const Seen five({0, 1, 2, 3, 4}, 0);
    const Seen alone({0}, 0);
    std::string moved = "k0";
    for (int i = 0; three.owns(moved) || four.owns(moved); ++i) moved = "k" + std::to_string(i);
    for (const Seen* started : {&four, &alone}) {
      Partition partition;
      REQUIRE(tell_start(partition, three) == ResultCode::kOk);
      partition.set(moved, "stale");
      REQUIRE(tell_start(partition, *started) == ResultCode::kOk);
      CHECK(tell(partition, three, four) == ResultCode::kOk);
      CHECK(partition.get(moved) == "-");
    }
    Partition restarted;  // the proxies were: nobody tells of the change to four
    REQUIRE(tell_start(restarted, three) == ResultCode::kOk);
    REQUIRE(tell_start(restarted, four) == ResultCode::kOk);
    restarted.set(moved, "stale");
    CHECK(tell(restarted, four, five) == ResultCode::kOk);
    CHECK(restarted.get(moved) == "-");
    Partition joining;
    const Seen without({0, 1, 2}, 3);
    const Seen with({0, 1, 2, 3}, 3);
    joining.set("a", "stale");
    REQUIRE(tell_start(joining, with) == ResultCode::kOk);
    CHECK(tell(joining, without, with) == ResultCode::kOk);
    CHECK_MESSAGE(joining.get("a") == "-", "who starts with it has not emptied it");
  }

  TEST_CASE("two proxies tell of the same change at once, in parts of different sizes") {
    Partition partition;
    const Seen three({0, 1, 2}, 0);
    const Seen four({0, 1, 2, 3}, 0);
    REQUIRE(tell_start(partition, four) == ResultCode::kOk);
    const auto part = [&](uint32_t offset, size_t size) {
      return partition.code(
          admin(AdminVerb::kMember, member_value(four.number, three.number, static_cast<uint32_t>(four.bytes.size()),
                                                 offset, std::string_view(four.bytes).substr(offset, size))));
    };
    CHECK(part(0, 5) == ResultCode::kStored);
    CHECK(part(0, 8) == ResultCode::kStored);
    CHECK(part(5, 2) == ResultCode::kStored);
    CHECK(part(20, 2) == ResultCode::kNoUpload);
    CHECK(part(7, 4'000) == ResultCode::kNotStored);
    CHECK(tell(partition, four, three) == ResultCode::kOk);
  }

  TEST_CASE("another change waits until the first is done") {
    Partition partition;
    const Seen two({0, 1}, 0);
    const Seen three({0, 1, 2}, 0);
    const Seen four({0, 1, 2, 3}, 0);
    for (int i = 0; i < 2'000; ++i) partition.set("k" + std::to_string(i), "v");
    REQUIRE(tell_start(partition, four) == ResultCode::kOk);
    const auto ask = [&](const Seen& from, const Seen& to, std::string_view part) {
      return partition.code(admin(
          AdminVerb::kMember, member_value(from.number, to.number, static_cast<uint32_t>(from.bytes.size()), 0, part)));
    };
    CHECK(ask(four, three, four.bytes) == ResultCode::kNotStored);
    CHECK(ask(three, two, three.bytes) == ResultCode::kNotStored);
    CHECK(tell_start(partition, two) == ResultCode::kNotStored);
    CHECK(tell(partition, three, two) == ResultCode::kOk);
  }

  TEST_CASE("bytes that are no membership, or another, are refused, and nothing is removed") {
    Partition partition;
    const Seen three({0, 1, 2}, 0);
    const Seen four({0, 1, 2, 3}, 0);
    partition.set("a", "v");
    partition.set("b", "v");
    partition.set("c", "v");
    const auto say = [&](std::string_view value) { return partition.code(admin(AdminVerb::kMember, value)); };
    CHECK(say("") == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, 3, 0, "abc").substr(0, 23)) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 0, 0, 0, "")) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, kMostMembersLength + 1, 0, "abc")) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, 3, 4, "")) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, 3, 1, "abc")) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, 3, UINT32_MAX, "abc")) == ResultCode::kInvalid);
    CHECK(say(member_value(1, 2, 3, 0, "abc")) == ResultCode::kInvalid);
    const auto length = static_cast<uint32_t>(four.bytes.size());
    CHECK_MESSAGE(say(member_value(three.number, 2, length, 0, four.bytes)) == ResultCode::kInvalid, "another's bytes");
    const std::string nobody(four.bytes.size(), '\0');
    CHECK(say(member_value(egret::pool::number_of_membership(nobody), 2, length, 0, nobody)) == ResultCode::kInvalid);
    const Seen without({1, 2}, 0);
    CHECK_MESSAGE(say(member_value(without.number, 2, static_cast<uint32_t>(without.bytes.size()), 0, without.bytes)) ==
                      ResultCode::kInvalid,
                  "this backend is none of them, but says a length");
    CHECK(partition.executor->levels().purges == 0);
    CHECK(partition.get("a") + partition.get("b") + partition.get("c") == "vvv");
  }

  TEST_CASE("a warm restart keeps what it belongs to, and a backend that joins after one removes everything again") {
    const std::string file = "/dev/shm/egret-members-test." + std::to_string(::getpid());
    const Seen three({0, 1, 2}, 3);
    const Seen four({0, 1, 2, 3}, 3);
    const Seen five({0, 1, 2, 3, 4}, 3);
    const Seen others({3, 9}, 3);
    std::string moved = "k0";
    for (int i = 0; four.owns(moved); ++i) moved = "k" + std::to_string(i);
    {
      Partition first(file);
      REQUIRE(tell(first, three, four) == ResultCode::kOk);
      first.set(moved, "v");
    }
    {
      Partition second(file);
      CHECK(tell(second, others, five) == ResultCode::kExists);
      CHECK(second.get(moved) == "v");
      CHECK(tell(second, four, five) == ResultCode::kOk);
      CHECK(second.get(moved) == "-");
      second.set(moved, "v");
      CHECK(tell(second, four, five) == ResultCode::kOk);
      CHECK(second.get(moved) == "v");
    }
    Partition third(file);
    CHECK(third.get(moved) == "v");
    CHECK(tell(third, Seen({0, 1, 2}, 3), five) == ResultCode::kOk);
    CHECK(third.get(moved) == "-");
    third.executor.reset();
    std::remove(file.c_str());
  }

  TEST_CASE("these verbs need the right to flush, and no other") {
    Partition partition;
    const std::string seconds = bytes_of(10);
    const Op warm = admin(AdminVerb::kWarm, seconds);
    const std::string value = member_value(0, 7, 0, 0, "");
    CHECK(partition.code(warm, 1) == ResultCode::kForbidden);
    CHECK(partition.code(admin(AdminVerb::kMember, value), 1) == ResultCode::kForbidden);
    CHECK(partition.code(warm, 2) == ResultCode::kOk);
    CHECK(partition.code(admin(AdminVerb::kMember, value), 2) == ResultCode::kOk);
    CHECK(partition.code(admin(AdminVerb::kResetStats, ""), 2) == ResultCode::kForbidden);
  }

  // Members come and go; the owners at the time set keys. The model: after each change that a member is told of, it
  // holds no item whose owner among the members before was another.
  TEST_CASE("through many changes nobody serves a value that was overwritten elsewhere") {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      constexpr int kMost = 5;
      std::vector<std::unique_ptr<Partition>> all;
      for (int i = 0; i < kMost; ++i) all.push_back(std::make_unique<Partition>("", 2 << 20));
      std::set<int> now{0, 1, 2};
      for (const int i : now) tell_start(*all[static_cast<size_t>(i)], Seen(now, i));
      std::map<std::string, std::string> newest;
      for (int change = 0; change < 12; ++change) {
        const egret::pool::Placement placement(kRule, members_of(now));
        const std::vector<int> numbers(now.begin(), now.end());
        const auto owner = [&](const std::string& key) -> Partition& {
          return *all[static_cast<size_t>(numbers[placement.member_of(key)])];
        };
        for (int i = 0; i < 300; ++i) {
          const std::string key = "k" + std::to_string(random() % 400);
          const std::string got = owner(key).get(key);
          REQUIRE_MESSAGE((got == "-" || got == newest[key]), key);
          newest[key] = std::to_string(change) + "." + std::to_string(i);
          owner(key).set(key, newest[key]);
        }
        std::set<int> then;
        while (then.empty() || then == now) {
          then = now;
          const int one = static_cast<int>(random() % kMost);
          if (!then.insert(one).second) then.erase(one);
        }
        for (int i = 0; i < kMost; ++i) {
          Partition& member = *all[static_cast<size_t>(i)];
          if (!then.contains(i) && !now.contains(i)) continue;
          REQUIRE(tell(member, Seen(now, i), Seen(then, i)) == ResultCode::kOk);
          if (!now.contains(i)) continue;
          const Seen before(now, i);
          for (int k = 0; k < 400; ++k) {
            const std::string key = "k" + std::to_string(k);
            if (!before.owns(key)) REQUIRE(member.get(key) == "-");
          }
        }
        now = then;
      }
    }
  }
}
