// Members told of changes by errands: several members, which the test plays, each behind an address of its own.
#include <array>
#include <climits>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pool/change/teller.h"
#include "pool_played_member.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;

namespace {

// A member: it notes what it is told, and needs some questions to do it.
struct Told {
  Told() {
    member.features = wire::kWarm;
    member.answer = [this](const op::Op& op) {
      if (op.code != op::OpCode::kAdmin) return rpc::result_of(ResultCode::kOk);
      op::MemberChangeHead head{};
      REQUIRE(op.value.size() >= sizeof head);
      std::memcpy(&head, op.value.data(), sizeof head);
      if (work > 0) return --work, rpc::result_of(ResultCode::kNotStored);
      changes.emplace_back(head.from, head.to);
      is_emptied |= head.from != 0 && head.length == 0;
      return rpc::result_of(code);
    };
  }
  // One line for all partitions.
  std::set<std::pair<uint64_t, uint64_t>> told() const { return {changes.begin(), changes.end()}; }

  PlayedMember member;
  ResultCode code = ResultCode::kOk;
  int work = 0;
  bool is_emptied = false;
  std::vector<std::pair<uint64_t, uint64_t>> changes;
};

std::array<Told, 5>* all = nullptr;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_by_address(const std::string& address,
                                                                              const transport::ConnectOptions&) {
  return connect_to((*all)[static_cast<size_t>(address.back() - '0')].member);
}

Member member(int number) {
  return {"shm:" + std::to_string(number), "m" + std::to_string(number)};
}

struct Pool final : TellerObserver, HealthObserver {
  explicit Pool(bool is_on = true) {
    all = &backends;
    rpc::SessionOptions session;
    session.connect_timeout_ns = session.op_timeout_ns = 20'000'000;
    watch.add_step(teller);
    watch.set_options({.eject_after = 3, .eject_share = 50, .probe_first_ns = 1'000'000, .probe_most_ns = 2'000'000},
                      session);
    teller.set_options(is_on, session, 50'000'000);
  }
  // As PoolControl: told first, then in force.
  void change(const std::set<int>& numbers) {
    begin_change(numbers);
    if (waits) {
      while (!is_told) loop.run_once(true);
    }
    put_in_force();
  }
  void begin_change(const std::set<int>& numbers) {
    next = of(numbers);
    is_told = false;
    waits = teller.tell(next);
  }
  void foresee(const std::set<int>& numbers) { teller.foresee(*of(numbers)); }
  std::shared_ptr<const Membership> of(const std::set<int>& numbers) const {
    std::vector<Member> members;
    for (const int number : numbers) members.push_back(member(number));
    return std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                              std::initializer_list<const Membership*>{now.get()});
  }
  void put_in_force() {
    now = next;
    teller.put_in_force(now);
    watch.set_membership(now);
  }
  const MemberStats& stats(int number) { return *now->members()[index_of(*now, member(number))].stats; }
  bool is_out(int number) { return state.get()->is_ejected(stats(number)); }
  // As a worker: nobody is there.
  void lose(int number) {
    stats(number).sessions[0]->signs.failures.add();
    state.ring();
  }
  template <typename Condition>
  void run_until(const Condition& is_done) {
    while (!is_done()) loop.run_once(true);
  }
  uint64_t number_of(int number, const std::shared_ptr<const Membership>& membership) {
    return news_for(member(number), nullptr, *membership).to;
  }

  void on_told() override { is_told = true; }
  void on_held_back(const Member& its, const std::string& its_why) override {
    log += its.name + "-";
    why = its_why;
  }
  void on_let_in(const Member& its) override { log += its.name + "+"; }
  void on_not_told(const Member& its, const std::string& its_why) override {
    log += its.name + "!";
    why = its_why;
  }
  void on_health() override {}
  void on_verdict(const Membership::Entry&, const HealthJudge::Verdict&) override {}
  void on_failed_probe(const Membership::Entry&, const std::string&) override {}

  std::array<Told, 5> backends;
  const base::SystemClock clock;
  events::EventLoop loop;
  HealthState state;
  ChangeCounters counters;
  Teller teller{loop, clock, watch, counters, *this, connect_by_address};
  HealthWatch watch{loop, clock, state, *this, connect_by_address};
  std::shared_ptr<const Membership> now = std::make_shared<const Membership>(), next;
  bool waits = false, is_told = false;
  std::string log, why;
};

}  // namespace

TEST_CASE("at the start members are told to whom they belong, and nobody waits for that") {
  Pool pool;
  pool.backends[1].member.behaviour = Behaviour::kRefusesConnection;
  pool.change({0, 1, 2});
  CHECK_FALSE(pool.waits);
  pool.run_until([&] { return pool.backends[0].changes.size() == 3 && pool.backends[2].changes.size() == 3; });
  CHECK(pool.backends[0].told() == std::set<std::pair<uint64_t, uint64_t>>{{0, pool.number_of(0, pool.now)}});
  CHECK_FALSE(pool.is_out(1));
  pool.backends[1].member.behaviour = Behaviour::kAnswers;
  pool.run_until([&] { return pool.backends[1].changes.size() == 3; });
  CHECK(pool.log.empty());
}

TEST_CASE("members that stay, leave and join are told before keys go by the next members") {
  Pool pool;
  pool.change({0, 1, 2});
  const auto three = pool.now;
  for (Told& each : pool.backends) each.work = 10;
  pool.change({1, 2, 3});
  CHECK(pool.waits);
  for (const int number : {0, 1, 2, 3}) {
    const auto told = std::pair(pool.number_of(number, three), pool.number_of(number, pool.now));
    CHECK(pool.backends[static_cast<size_t>(number)].told().contains(told));
    CHECK(pool.backends[static_cast<size_t>(number)].is_emptied == (number == 3));
  }
  CHECK(pool.state.get()->ejected() == 0);
  CHECK(pool.counters.told.get() == 4);
  CHECK(pool.log.empty());
}

TEST_CASE("whoever waits for the readmission of a member is not called when that goes by another transport meanwhile") {
  Pool pool;
  const auto by = [&](const std::string& transport) {
    const std::vector<Member> members{{transport + ":h:0", "m0"}, {transport + ":h:1", "m1"}};
    return std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                              std::initializer_list<const Membership*>{pool.now.get()});
  };
  const auto put_in_force = [&](const std::string& transport) {
    pool.next = by(transport);
    pool.teller.tell(pool.next);
    pool.put_in_force();
  };
  pool.backends[1].work = INT_MAX;  // it answers that it has not finished, so the telling does not end
  put_in_force("rdma");
  pool.run_until([&] { return pool.backends[1].work < INT_MAX; });
  int calls = 0;
  pool.teller.begin(pool.now->members()[1], [&](const base::Status&) { ++calls; });
  put_in_force("tcp");  // the readmission goes with the figures of the member that it was
  pool.backends[1].work = 0;
  pool.run_until([&] { return pool.counters.owed.get() == 0; });
  CHECK(calls == 0);
  CHECK_FALSE(pool.backends[1].is_emptied);
}

TEST_CASE("who does not answer is held back from the moment keys go by the next members, until it is told") {
  Pool pool;
  pool.change({0, 1, 2});
  pool.run_until([&] { return pool.backends[2].changes.size() == 3; });
  SUBCASE("nobody listens") {
    pool.backends[1].member.behaviour = Behaviour::kRefusesConnection;
  }
  SUBCASE("it stands still") {
    pool.backends[1].member.behaviour = Behaviour::kSaysNothing;
  }
  SUBCASE("its partitions stand still") {
    pool.backends[1].member.behaviour = Behaviour::kExecutesNothing;
  }
  SUBCASE("it dies") {
    pool.backends[1].member.behaviour = Behaviour::kDiesAtFirstOp;
  }
  pool.begin_change({0, 1, 2, 3});
  pool.run_until([&] { return pool.is_told; });
  CHECK_FALSE(pool.is_out(1));
  pool.put_in_force();
  CHECK(pool.is_out(1));
  CHECK_FALSE(pool.is_out(0));
  CHECK(pool.stats(1).health.is_held_back.get() == 1);
  CHECK(pool.log == "m1-");
  const size_t told = pool.backends[1].changes.size();
  pool.backends[1].member.behaviour = Behaviour::kAnswers;
  pool.run_until([&] { return !pool.is_out(1); });
  CHECK(pool.backends[1].changes.size() == told + 3);
  CHECK(pool.log == "m1-m1+");
  CHECK(pool.stats(1).health.is_held_back.get() == 0);
  CHECK(pool.counters.owed.get() <= 1);
}

// Workers go by the members before until they have applied the next ones.
TEST_CASE("who is held back and leaves is held back as long as a snapshot is of the members before") {
  Pool pool;
  pool.change({0, 1, 2});
  pool.run_until([&] { return pool.backends[2].changes.size() == 3; });
  pool.backends[1].member.behaviour = Behaviour::kRefusesConnection;
  pool.change({0, 1, 2, 3});
  REQUIRE(pool.is_out(1));
  const MemberStats& leaves = pool.stats(1);
  const std::shared_ptr<const Membership> before = pool.now;
  pool.begin_change({0, 2, 3});
  pool.run_until([&] { return pool.is_told; });
  pool.teller.put_in_force(pool.next);
  CHECK(pool.state.get()->membership() <= before->version());
  CHECK(pool.state.get()->is_ejected(leaves));
  pool.watch.set_membership(pool.next);
  CHECK(pool.state.get()->membership() == pool.next->version());
  CHECK(pool.state.get()->ejected() == 0);
}

TEST_CASE("one that is ejected is not waited for, and told when it answers its probe, before keys go to it") {
  Pool pool;
  pool.change({0, 1, 2});
  pool.run_until([&] { return pool.backends[1].changes.size() == 3; });
  pool.backends[1].member.behaviour = Behaviour::kSaysNothing;
  pool.lose(1);
  pool.run_until([&] { return pool.is_out(1); });
  pool.change({0, 1, 2, 3});
  CHECK(pool.log == "m1-");
  CHECK(pool.watch.is_ejected(pool.stats(1)));
  pool.backends[1].work = 5;
  pool.backends[1].member.behaviour = Behaviour::kAnswers;
  pool.run_until([&] { return !pool.watch.is_ejected(pool.stats(1)); });
  CHECK(pool.backends[1].changes.size() == 6);
  CHECK_FALSE(pool.is_out(1));
  CHECK(pool.log == "m1-m1+");
}

TEST_CASE("one that leaves without being told is owed that when it joins again, in order") {
  Pool pool;
  pool.change({0, 1});
  pool.run_until([&] { return pool.backends[1].changes.size() == 3; });
  const auto two = pool.now;
  pool.backends[1].member.behaviour = Behaviour::kRefusesConnection;
  pool.change({0});
  const auto one = pool.now;
  CHECK(pool.log.empty());
  CHECK(pool.counters.owed.get() == 1);
  pool.backends[1].member.behaviour = Behaviour::kAnswers;
  pool.backends[1].changes.clear();
  pool.change({0, 1});
  REQUIRE(pool.backends[1].changes.size() == 6);
  CHECK(pool.backends[1].changes[0] == std::pair(pool.number_of(1, two), pool.number_of(1, one)));
  CHECK(pool.backends[1].changes[5] == std::pair(pool.number_of(1, one), pool.number_of(1, pool.now)));
  CHECK(pool.backends[1].is_emptied);
  CHECK_FALSE(pool.is_out(1));
}

TEST_CASE("who belongs to others, refuses, or is too old is not waited for and not held back, and told of") {
  Pool pool;
  pool.change({0, 1, 2});
  pool.run_until([&] { return pool.backends[1].changes.size() == 3; });
  std::string why;
  SUBCASE("others") {
    pool.backends[1].code = ResultCode::kExists;
    why = "it belongs to other members than those before";
  }
  SUBCASE("no right") {
    pool.backends[1].code = ResultCode::kForbidden;
    why = "the secret gives no right to flush";
  }
  SUBCASE("unknown") {
    pool.backends[1].code = ResultCode::kUnsupported;
    why = "it refuses to be told";
  }
  SUBCASE("old") {
    pool.backends[1].member.features = 0;
    why = "it is of a version that knows nothing of this";
  }
  pool.change({0, 1, 2, 3});
  CHECK(pool.log == "m1!");
  CHECK(pool.why == why);
  CHECK_FALSE(pool.is_out(1));
  CHECK(pool.counters.not_told.get() == 1);
}

TEST_CASE("a proxy that is pointed at another pool removes nothing in either") {
  Pool pool;
  pool.change({0, 1});
  pool.run_until([&] { return pool.backends[0].changes.size() == 3 && pool.backends[1].changes.size() == 3; });
  pool.change({2, 3});
  CHECK_FALSE(pool.waits);
  pool.run_until([&] { return pool.backends[2].changes.size() == 3 && pool.backends[3].changes.size() == 3; });
  CHECK(pool.backends[2].told() == std::set<std::pair<uint64_t, uint64_t>>{{0, pool.number_of(2, pool.now)}});
  CHECK(pool.backends[0].changes.size() == 3);
}

TEST_CASE("a pool goes on by lists of which nobody was told: each has a member of those before it") {
  Pool pool;
  pool.change({0});
  pool.run_until([&] { return pool.backends[0].changes.size() == 3; });
  const auto first = pool.now;
  SUBCASE("one list") {
    pool.foresee({0, 1, 2});
  }
  SUBCASE("several, and others that have nothing to do with it") {
    pool.foresee({0, 2});
    pool.foresee({4});
    pool.foresee({2, 1});
    pool.foresee({3, 4});
  }
  pool.change({1});
  CHECK(pool.waits);
  CHECK(pool.backends[0].told().contains({pool.number_of(0, first), pool.number_of(0, pool.now)}));
  CHECK(pool.backends[1].told().contains({pool.number_of(1, first), pool.number_of(1, pool.now)}));
  CHECK(pool.backends[1].is_emptied);
  CHECK(pool.backends[2].changes.empty());
}

TEST_CASE("a list of which nobody was told counts until others are told") {
  Pool pool;
  pool.change({0});
  pool.run_until([&] { return pool.backends[0].changes.size() == 3; });
  pool.foresee({0, 1, 2});
  pool.change({0, 1});
  pool.change({2});
  CHECK_FALSE(pool.waits);
  pool.run_until([&] { return pool.backends[2].changes.size() == 3; });
  CHECK_FALSE(pool.backends[2].is_emptied);
}

TEST_CASE("further members before the first change is in force: those that were told are told of both, in order") {
  Pool pool;
  pool.change({0, 1});
  const auto first = pool.now;
  pool.begin_change({0, 1, 2});
  const auto second = pool.next;
  pool.run_until([&] { return pool.is_told; });
  pool.change({0, 2});
  const auto told = pool.backends[0].told();
  CHECK(told.contains({pool.number_of(0, first), pool.number_of(0, second)}));
  CHECK(told.contains({pool.number_of(0, second), pool.number_of(0, pool.now)}));
  CHECK(pool.log.empty());
}

TEST_CASE("switched off, nobody is told anything, and who was held back is let in") {
  Pool off(false);
  off.change({0, 1});
  off.change({0, 1, 2});
  CHECK_FALSE(off.waits);
  Pool pool;
  pool.change({0, 1});
  pool.backends[1].member.behaviour = Behaviour::kRefusesConnection;
  pool.change({0, 1, 2});
  CHECK(pool.is_out(1));
  pool.teller.set_options(false, {});
  CHECK_FALSE(pool.is_out(1));
  CHECK(off.backends[0].changes.empty());
  pool.backends[1].member.behaviour = Behaviour::kAnswers;
  pool.backends[0].changes.clear();
  pool.teller.set_options(true, {});
  pool.run_until([&] { return pool.backends[0].changes.size() == 3; });
  CHECK(pool.backends[0].told() == std::set<std::pair<uint64_t, uint64_t>>{{0, pool.number_of(0, pool.now)}});
}
