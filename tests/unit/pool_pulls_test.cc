// Values that are brought from the owner before to the present one. The test plays both, as stores of one value.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/warm/pulls.h"
#include "pool_played_pool.h"

using namespace egret;
using namespace egret::pool;
using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {

struct Budget final : PullMemory {
  bool take(uint64_t bytes) override {
    if (used + bytes > limit) return false;
    used += bytes;
    return true;
  }
  void give(uint64_t bytes) override { used -= bytes; }
  uint64_t limit = 1 << 20, used = 0;
};

struct Told final : PullWaiter {
  bool on_pulled(bool may_be_there) override {
    if (refuses > 0) {
      --refuses;
      return false;
    }
    if (log != nullptr) log->push_back(this);
    ++times;
    there = may_be_there;
    return true;
  }
  int times = 0, refuses = 0;
  bool there = false;
  std::vector<const Told*>* log = nullptr;
};

// A pool of "old" that "new" has joined, and keys that have moved there.
struct Change {
  explicit Change(uint64_t features = wire::kWarm) {
    pool.features = features;
    const std::shared_ptr<const Membership> before = std::make_shared<const Membership>(pool.router.membership());
    pool.apply({"old", "new"});
    pulls.keep(before);
    key = key_that_moves(pool, "new");
  }
  ~Change() {
    for (const auto& session : pool.router.sessions()) session->close(rpc::ClientSession::State::kClosed);
    for (const auto& session : pool.router.sessions()) session->credit().hand_out();
  }
  // Everything before is answered, by all.
  void begin() {
    serve();
    REQUIRE(pulls.is_fenced());
    pulls.open();
  }
  Result answer(const std::string& name, const Op& op) {
    Result result;
    result.code = ResultCode::kOk;
    if (op.code == OpCode::kGet) {
      ++gets;
      CHECK(name == "old");
      CHECK((op.options & op::kPeek) != 0);
      if (!value) return rpc::result_of(ResultCode::kMiss);
      result.code = ResultCode::kHit;
      result.value = *value;
      result.total_length = static_cast<uint32_t>(value->size());
      result.client_flags = 7;
      result.ttl = ttl;
      result.marks = marks;
      result.version = 3;
    } else if (op.code == OpCode::kChunk) {
      CHECK(op.version == 3);
      result.code = ResultCode::kHit;
      result.value = std::string_view(*value).substr(op.offset, op.length);
      result.total_length = static_cast<uint32_t>(value->size());
    } else if (op.code == OpCode::kUpload) {
      uploaded.resize(std::max<size_t>(uploaded.size(), op.offset + op.value.size()));
      uploaded.replace(op.offset, op.value.size(), op.value);
    } else if (op.code == OpCode::kSet || op.code == OpCode::kCommit) {
      CHECK(name == "new");
      CHECK(op.mode == op::SetMode::kFill);
      filled = op.code == OpCode::kSet ? std::string(op.value) : uploaded;
      fill = op;
      result.code = to_fill;
    }
    return result;
  }
  void serve() {
    pool.serve([&](const std::string& name, const Op& op) { return answer(name, op); });
  }
  bool pull(PullWaiter& waiter, bool patient = false) { return pull(key, waiter, patient); }
  bool pull(const std::string& which, PullWaiter& waiter, bool patient = false) {
    return pulls.pull(which, pool.router.route(which), &waiter, patient);
  }
  // Another key that has moved.
  std::string other(int number) {
    for (int i = 0;; ++i) {
      const std::string name = "other" + std::to_string(i);
      if (pool.owner_of(name) == "new" && number-- == 0) return name;
    }
  }

  PlayedPool pool{{"old"}};
  PullCounters counters;
  Budget memory;
  uint32_t next_upload = 1;
  Pulls pulls{pool.router, pool.clock, counters, memory, next_upload};
  std::string key;
  std::optional<std::string> value = "the value";
  int64_t ttl = -1;
  uint8_t marks = 0;
  ResultCode to_fill = ResultCode::kStored;
  int gets = 0;
  std::string filled, uploaded;
  Op fill;
};

}  // namespace

TEST_CASE("a value goes to the present owner with its flags, before its waiters go on") {
  Change change;
  change.begin();
  Told told;
  REQUIRE(change.pull(told));
  change.pool.silent = {"new"};
  change.serve();
  CHECK(told.times == 0);
  change.pool.silent = {};
  change.serve();
  CHECK(told.times == 1);
  CHECK(told.there);
  CHECK(change.filled == "the value");
  CHECK(change.fill.client_flags == 7);
  CHECK(change.fill.exptime == 0);
  CHECK(change.counters.pulled.get() == 1);
  CHECK(change.counters.filled.get() == 1);
  CHECK(change.pulls.count() == 0);
}

TEST_CASE("how long a value lives goes with it") {
  Change change;
  change.begin();
  Told told;
  for (const auto& [left, expected] : std::map<int64_t, int64_t>{
           {1, 1}, {2'592'000, 2'592'000}, {2'592'001, change.pool.clock.unix_seconds() + 2'592'001}}) {
    change.ttl = left;
    REQUIRE(change.pull(told));
    change.serve();
    CHECK(change.fill.exptime == expected);
  }
}

TEST_CASE("nothing is pulled before all that was under way with the owners before is answered") {
  Change change;
  Told told;
  CHECK_FALSE(change.pulls.is_fenced());
  CHECK_FALSE(change.pull(told));
  change.pool.silent = {"old"};
  change.serve();
  CHECK_FALSE(change.pulls.is_fenced());
  change.pool.silent = {};
  change.serve();
  CHECK(change.pulls.is_fenced());
  CHECK_FALSE(change.pull(told));  // other workers may not be
  change.pulls.open();
  CHECK(change.pull(told));
  change.serve();
  change.pulls.close();
  CHECK_FALSE(change.pull(told));
}

TEST_CASE("a key that stays is not pulled") {
  Change change;
  change.begin();
  Told told;
  CHECK_FALSE(change.pull(key_that_moves(change.pool, "old"), told));
  CHECK(change.counters.skipped.get() == 0);
}

TEST_CASE("what the owner before has not, or not for others, is no value") {
  Change change;
  change.begin();
  Told told;
  SUBCASE("missed") {
    change.value = std::nullopt;
  }
  SUBCASE("stale") {
    change.marks = op::kStale;
  }
  SUBCASE("about to expire") {
    change.ttl = 0;
  }
  REQUIRE(change.pull(told));
  change.serve();
  CHECK(told.times == 1);
  CHECK_FALSE(told.there);
  CHECK(change.filled.empty());
  CHECK(change.counters.absent.get() + change.counters.skipped.get() == 1);
}

TEST_CASE("a fill that is refused: the waiters look what is there") {
  Change change;
  change.begin();
  Told told;
  change.to_fill = ResultCode::kNotStored;
  REQUIRE(change.pull(told));
  change.serve();
  CHECK(told.there);
  CHECK(change.counters.refused.get() == 1);
}

TEST_CASE("who wants the same key shares the pull, and they go on in their order") {
  Change change;
  change.begin();
  std::vector<const Told*> order;
  Told first, second, third;
  first.log = second.log = third.log = &order;
  first.refuses = 1;  // there is no credit
  REQUIRE(change.pull(first));
  REQUIRE(change.pull(second));
  REQUIRE(change.pull(third));
  change.pulls.stop_waiting(&third);
  change.serve();
  change.pool.session("new").credit().announce();
  change.serve();
  CHECK(change.gets == 1);
  CHECK(order == std::vector<const Told*>{&first, &second});
  CHECK(third.times == 0);
}

TEST_CASE("a large value is fetched whole and sent in parts, and its memory is given back") {
  Change change;
  change.begin();
  change.value = std::string(20'000, 'x') + "end";
  Told told;
  SUBCASE("there is memory for it") {
    REQUIRE(change.pull(told));
    change.serve();
    CHECK(told.there);
    CHECK((change.filled == *change.value));
    CHECK(change.fill.client_flags == 7);
  }
  SUBCASE("there is none") {
    change.memory.limit = 1000;
    REQUIRE(change.pull(told));
    change.serve();
    CHECK(told.times == 1);
    CHECK_FALSE(told.there);
    CHECK(change.counters.skipped.get() == 1);
  }
  SUBCASE("the owner before is lost meanwhile") {
    REQUIRE(change.pull(told));
    change.pool.session("old").flush();
    change.pool.lose("old");
    CHECK(told.times == 1);
    CHECK_FALSE(told.there);
  }
  SUBCASE("the present owner is lost meanwhile") {
    REQUIRE(change.pull(told));
    change.pool.silent = {"new"};
    change.serve();
    change.pool.lose("new");
    CHECK(told.times == 1);
    CHECK_FALSE(told.there);
  }
  CHECK(change.memory.used == 0);
}

TEST_CASE("so many are pulled at once, others wait, and beyond that a miss is a miss, but not for who is patient") {
  Change change;
  change.begin();
  std::vector<Told> told(Pulls::kMostAtOnce + Pulls::kMostWaiting + 2);
  for (size_t i = 0; i < told.size() - 2; ++i) REQUIRE(change.pull(change.other(static_cast<int>(i)), told[i]));
  CHECK(change.counters.pulled.get() == Pulls::kMostAtOnce);
  const std::string beyond = change.other(static_cast<int>(told.size()));
  CHECK_FALSE(change.pull(beyond, told[told.size() - 2]));
  CHECK(change.counters.skipped.get() == 1);
  CHECK(change.pull(beyond, told.back(), true));
  change.serve();
  CHECK(told.back().there);
  CHECK(change.pulls.count() == 0);
  CHECK(change.counters.filled.get() == told.size() - 1);
}

TEST_CASE("an owner before that does not answer is not asked again for a while, and who waits for it goes on") {
  Change change;
  change.begin();
  std::vector<Told> told(Pulls::kMostAtOnce + 10);
  for (size_t i = 0; i < told.size(); ++i) REQUIRE(change.pull(change.other(static_cast<int>(i)), told[i]));
  change.pool.session("old").flush();
  change.pool.session("old").lanes()[0].expire(UINT64_MAX);  // as ClientSession::tick()
  for (const Told& each : told) CHECK((each.times == 1 && !each.there));
  CHECK(change.pulls.count() == 0);
  CHECK_FALSE(change.pull(told[0]));
  change.pool.clock.advance_ns(Pulls::kRestNs);
  CHECK(change.pull(told[0]));
  change.pulls.stop_waiting(told.data());
}

TEST_CASE("a member that may have begun anew since, or knows no fills, gets none") {
  SUBCASE("its session is a later one") {
    Change change;
    change.begin();
    change.pool.lose("new");
    change.pool.reopen("new");
    Told told;
    CHECK_FALSE(change.pull(told));
  }
  SUBCASE("it is of an earlier version") {
    Change change(0);
    change.begin();
    Told told;
    CHECK_FALSE(change.pull(told));
  }
}

TEST_CASE("the end of the phase: who waits goes on, what is under way ends") {
  Change change;
  change.begin();
  std::vector<Told> told(Pulls::kMostAtOnce + 10);
  for (size_t i = 0; i < told.size(); ++i) REQUIRE(change.pull(change.other(static_cast<int>(i)), told[i]));
  change.pulls.close();
  CHECK(told.back().times == 1);
  CHECK_FALSE(told.back().there);
  CHECK(told.front().times == 0);
  change.serve();
  CHECK(told.front().there);
  CHECK(change.pulls.count() == 0);
}

TEST_CASE("a member that has left is asked as long as the phase is, and then let go") {
  PlayedPool pool({"old", "gone"});
  const std::shared_ptr<const Membership> before = std::make_shared<const Membership>(pool.router.membership());
  const std::string key = key_that_moves(pool, "gone");
  PullCounters counters;
  Budget memory;
  uint32_t next_upload = 1;
  Pulls pulls(pool.router, pool.clock, counters, memory, next_upload);
  pool.apply({"old"});
  pulls.keep(before);
  const auto answer = [](const std::string&, const Op& op) {
    Result result = rpc::result_of(op.code == OpCode::kGet   ? ResultCode::kHit
                                   : op.code == OpCode::kSet ? ResultCode::kStored
                                                             : ResultCode::kOk);
    result.ttl = -1;
    return result;
  };
  pool.serve(answer);
  pool.router.let_leave(pool.clock.now_ns());
  pulls.open();
  Told told;
  REQUIRE(pulls.pull(key, pool.router.route(key), &told, false));
  pool.serve(answer);
  CHECK(told.there);
  pulls.close();
  pool.router.let_leave(pool.clock.now_ns());
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

// A later list has the member again, before the change that leaves it out is over: it keeps its session.
TEST_CASE(
    "a member that is back before its values were all pulled waits only for what is under way, and is not asked") {
  PlayedPool pool({"old", "gone"});
  const std::shared_ptr<const Membership> before = std::make_shared<const Membership>(pool.router.membership());
  const std::string key = key_that_moves(pool, "gone");
  PullCounters counters;
  Budget memory;
  uint32_t next_upload = 1;
  Pulls pulls(pool.router, pool.clock, counters, memory, next_upload);
  pool.apply({"old"});
  pulls.keep(before);
  const auto answer = [](const std::string&, const Op& op) {
    Result result = rpc::result_of(op.code == OpCode::kGet   ? ResultCode::kHit
                                   : op.code == OpCode::kSet ? ResultCode::kStored
                                                             : ResultCode::kOk);
    result.ttl = -1;
    return result;
  };
  pool.serve(answer);
  pulls.open();
  Told told;
  REQUIRE(pulls.pull(key, pool.router.route(key), &told, false));
  CHECK(pool.router.prepare(*before).empty());
  CHECK_FALSE(pool.router.is_ready_for(*before));
  Told later;
  CHECK_FALSE(pulls.pull(key + "-", pool.router.route(key + "-"), &later, false));
  pool.serve(answer);
  CHECK(told.there);
  CHECK(pool.router.is_ready_for(*before));
  rpc::ClientSession& back = pool.session("gone");
  pool.router.apply(before, pool.clock.now_ns());
  CHECK(back.is_open());
  CHECK(&pool.session("gone") == &back);
}

// It is about to return: its sessions are open, and what was changed in its place is not purged on it yet.
TEST_CASE("a member that leaves while others stand in for it is not asked: what it has may be older") {
  PlayedPool pool({"old", "gone"});
  const std::shared_ptr<const Membership> before = std::make_shared<const Membership>(pool.router.membership());
  const std::string key = key_that_moves(pool, "gone");
  bool is_absent = false;
  SUBCASE("absent") {
    is_absent = true;
    const MemberStats* const gone = before->members()[1].stats.get();
    pool.router.take(std::make_shared<const Health>(
        1, std::vector<Absent>{{.member = gone, .how = Absence::kStoodIn, .opens = true, .tag = 5}}));
  }
  SUBCASE("not absent: it is asked") {}
  REQUIRE(pool.session("gone").is_open());
  PullCounters counters;
  Budget memory;
  uint32_t next_upload = 1;
  Pulls pulls(pool.router, pool.clock, counters, memory, next_upload);
  pool.apply({"old"});
  pulls.keep(before);
  pool.serve([](const std::string&, const Op&) { return rpc::result_of(ResultCode::kOk); });
  pulls.open();
  Told told;
  CHECK(pulls.pull(key, pool.router.route(key), &told, false) != is_absent);
  pool.serve([](const std::string&, const Op&) { return rpc::result_of(ResultCode::kMiss); });
}
