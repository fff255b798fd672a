// The absence of an owner: when others stand in for it, what is purged on it before it returns, and what is kept when
// that fails. And the questions that go with it.
#include <ctime>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "op/records.h"
#include "pool/gutter/dialogue.h"
#include "pool/gutter/failover.h"
#include "pool/gutter/stand_in.h"

using namespace egret;
using namespace egret::pool;
using State = Failover::State;
using Keys = std::vector<std::string>;
using Members = std::vector<const MemberStats*>;

namespace {

struct Story {
  Story() { failover.on_gutter(Members{&one, &two}); }
  void stand_in() {
    failover.on_ejected();
    failover.on_left();
    for (const MemberStats* member : failover.to_enter()) failover.on_entered(member, at(10));
  }
  // As far as nothing was changed but what is told.
  void read(const Keys& of_one = {}, const Keys& of_two = {}, bool is_complete = true) {
    failover.on_read(&one, at(20), of_one, is_complete);
    failover.on_read(&two, at(20), of_two, true);
  }
  static Places at(uint64_t cursor, uint64_t epoch = 1) { return {epoch, {cursor, cursor}}; }
  Absent absent() const { return failover.absent(&owner); }

  const MemberStats owner{1}, one{1}, two{1};
  Failover failover{77};
};

}  // namespace

TEST_CASE("nobody stands in before no worker sends to the owner, nor before being entered") {
  Story its;
  its.failover.on_ejected();
  CHECK(its.absent().how == Absence::kFails);
  CHECK(its.failover.to_enter().empty());
  its.failover.on_entered(&its.one, its.at(10));  // too early
  CHECK_FALSE(its.failover.readmit());
  its.failover.on_left();
  CHECK(its.absent().how == Absence::kStoodIn);
  CHECK(its.absent().entered.empty());
  CHECK(its.failover.to_enter() == Members{&its.one, &its.two});
  its.failover.on_entered(&its.two, its.at(10));
  CHECK(its.absent().entered == Members{&its.two});
  CHECK(its.absent().tag == 77);
  CHECK_FALSE(its.absent().opens);
  CHECK(its.failover.to_enter() == Members{&its.one});
}

TEST_CASE("before it returns, what was changed is purged, the last of it while ops wait") {
  Story its;
  its.stand_in();
  REQUIRE(its.failover.readmit());
  CHECK(its.absent().how == Absence::kStoodIn);
  CHECK(its.absent().opens);
  CHECK(its.failover.to_read().empty());  // what the workers had sent to it may not be over yet
  its.failover.on_opened();
  CHECK(its.failover.to_read().size() == 2);
  CHECK(its.failover.places(&its.one) == its.at(10));
  its.read({"a"}, {"b", "c"});
  REQUIRE(its.failover.is_purge_due());
  CHECK(its.failover.keys() == Keys{"a", "b", "c"});
  its.failover.on_purged();
  CHECK(its.failover.state() == State::kPausing);
  CHECK(its.absent().how == Absence::kWaits);
  CHECK(its.absent().opens);
  CHECK_FALSE(its.failover.is_purge_due());
  its.failover.on_fenced();
  CHECK(its.failover.places(&its.one) == its.at(20));
  its.read({"d"});
  REQUIRE(its.failover.is_purge_due());
  CHECK_FALSE(its.failover.is_flush_due());
  CHECK(its.failover.keys() == Keys{"d"});
  its.failover.on_purged();
  CHECK(its.failover.state() == State::kServing);
}

TEST_CASE("many keys are purged in rounds before ops have to wait, though not for ever") {
  Story its;
  its.stand_in();
  its.failover.readmit();
  its.failover.on_opened();
  int rounds = 0;
  for (; its.failover.state() == State::kCatchingUp; ++rounds) {
    its.read(Keys(Failover::kFew + 1, "k"));
    its.failover.on_purged();
  }
  CHECK(rounds == Failover::kMostRounds);
  CHECK(its.failover.state() == State::kPausing);
}

TEST_CASE("what may be unknown is flushed, while ops wait") {
  Story its;
  its.stand_in();
  its.failover.readmit();
  its.failover.on_opened();
  SUBCASE("a page says so") {
    its.read({"a"}, {"b"}, false);
  }
  SUBCASE("one that took ops cannot be asked") {
    its.failover.on_read(&its.one, its.at(20), {"a"}, true);
    its.failover.on_not_read(&its.two);
  }
  SUBCASE("there are too many keys") {
    its.read(Keys(Failover::kMostKeys + 1));
  }
  REQUIRE(its.failover.is_purge_due());
  CHECK_FALSE(its.failover.is_flush_due());
  CHECK(its.failover.keys().empty());
  its.failover.on_purged();
  its.failover.on_fenced();
  its.read({"c"});
  REQUIRE(its.failover.is_purge_due());
  CHECK(its.failover.is_flush_due());
  its.failover.on_purged();
  CHECK(its.failover.state() == State::kServing);
  its.stand_in();  // the next absence begins anew
  its.failover.readmit();
  its.failover.on_opened();
  its.read();
  its.failover.on_purged();
  its.failover.on_fenced();
  its.read();
  CHECK_FALSE(its.failover.is_flush_due());
}

TEST_CASE("a return that fails leaves the owner absent, and loses no key that was read") {
  Story its;
  its.stand_in();
  its.failover.readmit();
  its.failover.on_opened();
  its.read({"a"});
  its.failover.give_up();  // it died while "a" was purged
  CHECK(its.failover.state() == State::kStandingIn);
  CHECK(its.absent().entered.size() == 2);
  CHECK(its.failover.to_enter().empty());
  its.failover.readmit();
  its.failover.on_opened();
  its.read({"b"});
  CHECK(its.failover.keys() == Keys{"a", "b"});
}

TEST_CASE("a place in the log outlives the absence: what comes late is purged after the next one") {
  Story its;
  its.stand_in();
  its.failover.readmit();
  its.failover.on_opened();
  its.read();
  its.failover.on_purged();
  its.failover.on_fenced();
  its.read();
  its.failover.on_purged();
  REQUIRE(its.failover.state() == State::kServing);
  its.failover.on_ejected();
  its.failover.on_left();
  its.failover.on_entered(&its.one, its.at(30));
  its.failover.on_entered(&its.two, its.at(30, 2));  // another process: nothing from before can come
  CHECK(its.failover.places(&its.one) == its.at(20));
  CHECK(its.failover.places(&its.two) == its.at(30, 2));
}

TEST_CASE("while the owner serves, a place follows what others have purged") {
  Story its;
  its.stand_in();
  its.failover.readmit();
  its.failover.on_opened();
  its.read();
  its.failover.on_purged();
  its.failover.on_fenced();
  its.read();
  its.failover.on_purged();
  REQUIRE(its.failover.state() == State::kServing);
  its.failover.on_read(&its.one, its.at(40), {}, true);
  its.failover.on_ejected();
  its.failover.on_left();
  its.failover.on_read(&its.one, its.at(50), {}, true);  // not any more
  its.failover.on_entered(&its.one, its.at(60));
  CHECK(its.failover.places(&its.one) == its.at(40));
}

TEST_CASE("one that took no op in this absence, and cannot be asked, does not matter") {
  Story its;
  its.failover.on_ejected();
  its.failover.on_left();
  its.failover.on_entered(&its.one, its.at(10));
  its.failover.readmit();
  its.failover.on_opened();
  CHECK(its.failover.to_read() == Members{&its.one});
  its.failover.on_read(&its.one, its.at(20), {}, true);
  CHECK(its.failover.is_purge_due());
}

TEST_CASE("when keys have other owners all are entered anew, and what was changed until then is still purged") {
  Story its;
  its.stand_in();
  its.failover.on_gutter(Members{&its.one, &its.two}, Failover::Keys::kMoved);
  CHECK(its.absent().how == Absence::kFails);
  CHECK_FALSE(its.failover.readmit());
  its.failover.on_left();
  CHECK(its.failover.to_enter() == Members{&its.one, &its.two});
  its.failover.on_entered(&its.one, its.at(15));
  its.failover.on_entered(&its.two, its.at(15));
  REQUIRE(its.failover.readmit());
  its.failover.on_opened();
  CHECK(its.failover.places(&its.one) == its.at(10));
  its.read({"a"});
  CHECK(its.failover.keys() == Keys{"a"});
  CHECK_FALSE(its.failover.is_flush_due());
}

TEST_CASE("one that has taken ops in this absence, and cannot be asked later, matters though it was not entered anew") {
  Story its;
  its.stand_in();
  its.failover.on_gutter(Members{&its.one, &its.two}, Failover::Keys::kMoved);
  its.failover.on_left();
  its.failover.on_entered(&its.one, its.at(15));
  REQUIRE(its.failover.readmit());
  its.failover.on_opened();
  its.failover.on_read(&its.one, its.at(20), {}, true);
  its.failover.on_not_read(&its.two);
  its.failover.on_purged();
  its.failover.on_fenced();
  CHECK(its.failover.is_flush_due());
}

TEST_CASE("one that has taken ops in this absence, and is entered anew in another process, has forgotten them") {
  Story its;
  its.stand_in();
  its.failover.on_gutter(Members{&its.one, &its.two}, Failover::Keys::kMoved);
  its.failover.on_left();
  its.failover.on_entered(&its.one, its.at(15, 2));
  its.failover.on_entered(&its.two, its.at(15));
  REQUIRE(its.failover.readmit());
  its.failover.on_opened();
  its.read();
  its.failover.on_purged();
  its.failover.on_fenced();
  CHECK(its.failover.is_flush_due());
}

TEST_CASE("when the gutter changes all are entered anew, and what a former one knew is lost") {
  Story its;
  its.stand_in();
  its.failover.on_gutter(Members{&its.one});
  CHECK(its.absent().how == Absence::kFails);
  its.failover.on_left();
  CHECK(its.failover.to_enter() == Members{&its.one});
  its.failover.on_entered(&its.one, its.at(30));
  CHECK(its.failover.places(&its.one) == its.at(10));
  its.failover.readmit();
  its.failover.on_opened();
  its.failover.on_read(&its.one, its.at(20), {"a"}, true);
  its.failover.on_purged();
  its.failover.on_fenced();
  its.failover.on_read(&its.one, its.at(20), {"a"}, true);
  CHECK(its.failover.is_flush_due());
}

// --- dialogues

namespace {

struct Sent {
  op::Op op;
  std::string key;
  uint32_t partition;
  uint64_t tag;
};

struct Talk {
  Dialogue::Send send = [this](const op::Op& op, uint32_t partition, uint64_t tag) {
    sent.push_back({op, std::string(op.key), partition, tag});
  };
  std::vector<Sent> take() { return std::exchange(sent, {}); }
  std::vector<Sent> sent;
};

std::string records(const Keys& keys) {
  std::string bytes;
  for (const std::string& key : keys) op::append_record(bytes, {}, key);
  return bytes;
}

op::Result answer(op::ResultCode code) {
  op::Result result;
  result.code = code;
  return result;
}

op::Result page(uint64_t cursor, std::string_view value = {}, bool is_incomplete = false) {
  op::Result result;
  result.code = op::ResultCode::kOk;
  result.version = cursor;
  result.value = value;
  result.number = is_incomplete ? 1 : 0;
  return result;
}

}  // namespace

TEST_CASE("entering asks each partition, and notes its place") {
  Talk talk;
  Entering entering(77);
  entering.begin(5, 2, talk.send);
  const auto sent = talk.take();
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].partition == 1);
  CHECK(sent[1].op.owner == 77);
  CHECK(sent[1].op.version == op::kEnterFailover);
  entering.on_answer(0, page(100), talk.send);
  entering.on_answer(1, page(200), talk.send);
  CHECK(entering.places() == Places{5, {100, 200}});
  CHECK(entering.fault().empty());
  entering.on_answer(1, answer(op::ResultCode::kForbidden), talk.send);
  CHECK_FALSE(entering.fault().empty());
}

TEST_CASE("reading goes on to the end of each partition's log") {
  Talk talk;
  Reading reading(77, {5, {100, 200}});
  reading.begin(5, 2, talk.send);
  CHECK(talk.take()[0].op.version == 100);
  const std::string bytes = records({"a", "b"});
  reading.on_answer(0, page(150, bytes), talk.send);
  reading.on_answer(1, page(200), talk.send);
  const auto sent = talk.take();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].op.version == 150);
  CHECK(sent[0].partition == 0);
  reading.on_answer(0, page(150), talk.send);
  CHECK(talk.take().empty());
  CHECK(reading.places() == Places{5, {150, 200}});
  CHECK(reading.take_keys() == Keys{"a", "b"});
  CHECK(reading.is_complete());
  reading.on_answer(0, page(170, {}, true), talk.send);
  CHECK_FALSE(reading.is_complete());
}

TEST_CASE("another process does not know what was changed before it") {
  Talk talk;
  Reading reading(77, {5, {100, 200}});
  reading.begin(6, 2, talk.send);
  CHECK_FALSE(reading.is_complete());
  CHECK(talk.take()[0].op.version == op::kChangesFromNow);
}

TEST_CASE("marking tells the same process up to where the owner is purged") {
  Talk talk;
  Marking marking(77, {5, {100, 200}});
  marking.begin(6, 2, talk.send);
  CHECK(talk.take().empty());
  marking.begin(5, 2, talk.send);
  const auto sent = talk.take();
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].op.version == 200);
  CHECK(sent[1].op.owner == 77);
  CHECK(sent[1].op.size_class == op::kPurgedBefore);
}

TEST_CASE("purging deletes each key once, or flushes each partition") {
  Talk talk;
  Keys keys;
  for (int i = 0; i < 600; ++i) keys.push_back("key" + std::to_string(i));
  Purging purging(keys, false);
  purging.begin(5, 3, talk.send);
  Keys deleted;
  while (!talk.sent.empty()) {
    for (const Sent& each : talk.take()) {
      CHECK(each.op.code == op::OpCode::kDelete);
      CHECK(each.partition == Dialogue::kOfKey);
      deleted.push_back(each.key);
      purging.on_answer(0, answer(deleted.size() % 2 != 0 ? op::ResultCode::kMiss : op::ResultCode::kDeleted),
                        talk.send);
    }
  }
  CHECK(deleted == keys);
  CHECK(purging.fault().empty());
  purging.on_answer(0, answer(op::ResultCode::kForbidden), talk.send);
  CHECK_FALSE(purging.fault().empty());
  Purging flush({}, true);
  flush.begin(5, 3, talk.send);
  CHECK(talk.take().size() == 3);
}

// --- ops

TEST_CASE("an op in the place of an owner has its tag, and no time to live beyond the limit") {
  const auto after = [](int64_t exptime, op::OpCode code = op::OpCode::kSet) {
    op::Op op;
    op.code = code;
    op.exptime = op.vivify_exptime = exptime;
    stand_in(op, 77, 60);
    CHECK(op.owner == 77);
    CHECK((code == op::OpCode::kFlush || op.exptime == op.vivify_exptime));
    return op.exptime;
  };
  const auto now = static_cast<int64_t>(std::time(nullptr));
  CHECK(after(0) == 60);
  CHECK(after(59) == 59);
  CHECK(after(61) == 60);
  CHECK(after(30LL * 24 * 3600) == 60);
  CHECK(after(-1) == -1);
  CHECK(after(now + 1000) == 60);
  CHECK(after(now + 5) == now + 5);
  CHECK(after(now - 5) == now - 5);
  CHECK(after(1000, op::OpCode::kFlush) == 1000);
  CHECK(tag_of("10.0.0.1:11211") == tag_of("10.0.0.1"));
  CHECK(tag_of("10.0.0.1") != tag_of("10.0.0.2"));
}
