// The watch over a pool's members: signs that are rung for, probes of a member that the test plays, and the snapshot.
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pool/health_watch.h"
#include "pool_played_member.h"

using namespace egret;
using namespace egret::pool;
using Kind = HealthJudge::Verdict::Kind;

namespace {

const std::vector<Member> kThree{{"shm:a", "a"}, {"shm:b", "b"}, {"shm:c", "c"}};
constexpr HealthOptions kOptions{
    .eject_after = 3, .eject_share = 50, .probe_first_ns = 1'000'000, .probe_most_ns = 2'000'000};

struct Watched final : HealthObserver {
  Watched() {
    played = &member;
    rpc::SessionOptions session;
    session.connect_timeout_ns = session.op_timeout_ns = 20'000'000;
    watch.set_options(kOptions, session);
    change(kThree);
    for (size_t i = 0; i < 3; ++i) open(i, true);
  }
  void change(const std::vector<Member>& members) {
    membership = std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                                    std::initializer_list<const Membership*>{membership.get()});
    watch.set_membership(membership);
  }
  MemberStats& stats(size_t number) { return *membership->members()[number].stats; }
  void open(size_t number, bool is_open) { stats(number).sessions[0]->is_open.set(is_open ? 1 : 0); }
  // As a worker: the session is lost.
  void lose(size_t number) {
    open(number, false);
    stats(number).sessions[0]->signs.failures.add();
    state.ring();
  }
  void run_until(const std::function<bool()>& is_done) {
    while (!is_done()) loop.run_once(true);
  }
  void on_health() override { ++healths; }
  void on_verdict(const Membership::Entry& its, const HealthJudge::Verdict& verdict) override {
    const bool is_let_in = verdict.kind == Kind::kLetIn;
    told += its.member.name + (verdict.kind == Kind::kEjected    ? "-"
                               : verdict.kind == Kind::kReturned ? "+"
                               : is_let_in                       ? "~"
                                                                 : "!");
  }
  void on_failed_probe(const Membership::Entry&, const std::string& its) override { why = its; }

  PlayedMember member;
  const base::SystemClock clock;
  events::EventLoop loop;
  HealthState state;
  HealthWatch watch{loop, clock, state, *this, connect_to_played};
  std::shared_ptr<const Membership> membership = std::make_shared<const Membership>();
  int healths = 0;
  std::string told, why;
};

// A step of readmission that the test ends.
struct Step final : Readmission {
  Step(Watched& pool, std::string its) : log(pool.told), mark(std::move(its)) { pool.watch.add_step(*this); }
  void begin(const Membership::Entry& member, Done its) override {
    log += mark + member.member.name;
    done = std::move(its);
    if (is_at_once) end(base::Status::ok());
  }
  void cancel(const MemberStats&) override {
    log += mark + "x";
    done = nullptr;
  }
  void end(const base::Status& status) { std::exchange(done, nullptr)(status); }

  std::string& log;
  const std::string mark;
  Done done;
  bool is_at_once = false;
};

}  // namespace

TEST_CASE("a ring leads to a verdict, a snapshot and probes, until one is answered by every partition") {
  Watched pool;
  CHECK(pool.state.version() == 0);
  pool.member.behaviour = Behaviour::kRefusesConnection;
  pool.lose(1);
  pool.run_until([&] { return !pool.told.empty(); });
  CHECK(pool.told == "b-");
  CHECK(pool.state.version() == 1);
  CHECK(pool.state.get()->is_ejected(pool.stats(1)));
  CHECK_FALSE(pool.state.get()->is_ejected(pool.stats(0)));
  CHECK(pool.healths == 1);
  MemberStats::Health& health = pool.stats(1).health;
  CHECK(health.is_ejected.get() == 1);
  CHECK(health.why.get() == static_cast<uint64_t>(EjectReason::kUnreachable));
  pool.run_until([&] { return health.failed_probes.get() == 2; });
  CHECK(pool.why == "connection refused");
  pool.member.behaviour = Behaviour::kExecutesNothing;  // it gives sessions, but its partitions stand still
  pool.run_until([&] { return health.failed_probes.get() == 3; });
  CHECK(pool.why == "the backend does not answer");
  pool.member.behaviour = Behaviour::kAnswers;
  pool.run_until([&] { return pool.told == "b-b+"; });
  CHECK(pool.member.got.size() == kLayout.lanes);
  CHECK(pool.state.get()->ejected() == 0);
  CHECK(pool.healths == 2);
  CHECK(health.is_ejected.get() == 0);
  CHECK(health.ejections.get() == 1);
  CHECK(health.probes.get() == 4);
}

TEST_CASE("beyond the share a member is spared, and told of") {
  Watched pool;
  pool.member.behaviour = Behaviour::kRefusesConnection;
  pool.lose(0);
  pool.lose(2);
  pool.run_until([&] { return pool.told.size() >= 4; });
  CHECK(pool.told == "a-c!");
  CHECK(pool.state.get()->ejected() == 1);
  CHECK(pool.stats(2).health.ejections.get() == 0);
}

TEST_CASE("one that is ejected is let in, without a probe, when the pool has become too small for it to be ejected") {
  Watched pool;
  pool.member.behaviour = Behaviour::kSaysNothing;
  pool.lose(1);
  pool.run_until([&] { return pool.stats(1).health.probes.get() == 1; });
  MemberStats& stats = pool.stats(1);
  pool.change({kThree[1]});
  CHECK(pool.told == "b-b~");
  CHECK(pool.state.get()->ejected() == 0);
  CHECK(stats.health.is_ejected.get() == 0);
}

TEST_CASE("one in whose place others stand is not let in: it has to be purged before") {
  struct StoodIn final : AbsenceSource {
    Absent absent(const MemberStats& member) override { return {.member = &member, .tag = 7}; }
    void look() override {}
  };
  StoodIn others;
  Watched pool;
  pool.watch.set_absences(others);
  pool.member.behaviour = Behaviour::kSaysNothing;
  pool.lose(1);
  pool.run_until([&] { return pool.told == "b-"; });
  pool.change({kThree[1]});
  CHECK(pool.told == "b-");
  CHECK(pool.state.get()->is_ejected(pool.stats(0)));
}

TEST_CASE("one that leaves the pool while it is probed is forgotten") {
  Watched pool;
  pool.member.behaviour = Behaviour::kSaysNothing;
  pool.lose(1);
  pool.run_until([&] { return pool.stats(1).health.probes.get() == 1; });
  CHECK(pool.state.get()->membership() == pool.membership->version());
  pool.change({kThree[0], kThree[2]});
  CHECK(pool.state.get()->ejected() == 0);
  CHECK(pool.state.get()->membership() == pool.membership->version());
  CHECK(pool.healths == 2);
  for (int i = 0; i < 3; ++i) pool.loop.run_once(false);
  CHECK(pool.told == "b-");
}

TEST_CASE("while nobody is ejected nothing is pending") {
  Watched pool;
  pool.state.ring();
  pool.loop.run_once(true);
  pool.loop.run_once(false);
  CHECK(pool.told.empty());
  CHECK(pool.healths == 0);
}

TEST_CASE(
    "one that answers is let in when each step has succeeded, one after the other; a failed one is a failed probe") {
  Watched pool;
  Step first(pool, "1");
  Step second(pool, "2");
  pool.lose(1);
  pool.run_until([&] { return first.done != nullptr; });
  CHECK(pool.told == "b-1b");
  CHECK(pool.member.got.size() == kLayout.lanes);
  first.end(base::Status::ok());
  CHECK(pool.told == "b-1b2b");
  CHECK(pool.state.get()->is_ejected(pool.stats(1)));
  second.end(base::Status::error("not now"));
  CHECK(pool.why == "not now");
  CHECK(pool.stats(1).health.failed_probes.get() == 1);
  first.is_at_once = true;
  pool.run_until([&] { return second.done != nullptr; });
  CHECK(pool.told == "b-1b2b1b2b");
  second.end(base::Status::ok());
  CHECK(pool.told == "b-1b2b1b2bb+");
  CHECK(pool.state.get()->ejected() == 0);
}

TEST_CASE("a step is cancelled when its member leaves") {
  Watched pool;
  Step step(pool, "1");
  pool.lose(1);
  pool.run_until([&] { return step.done != nullptr; });
  pool.change({kThree[0], kThree[2]});
  CHECK(pool.told == "b-1b1x");
}

TEST_CASE("keys do not go to those that are held back, whether they are ejected or not") {
  Watched pool;
  Membership next(PlacementRule::kKetama, std::vector<Member>{kThree[0], kThree[1], {"shm:d", "d"}}, 1,
                  {pool.membership.get()});
  const MemberStats& joining = *next.members()[2].stats;
  pool.watch.hold_back({&joining, &pool.stats(1)});
  CHECK(pool.healths == 1);
  CHECK(pool.state.get()->is_ejected(joining));
  CHECK(pool.state.get()->is_ejected(pool.stats(1)));
  CHECK_FALSE(pool.watch.is_ejected(pool.stats(1)));
  CHECK(pool.stats(1).health.is_ejected.get() == 0);
  pool.member.behaviour = Behaviour::kRefusesConnection;
  pool.lose(1);
  pool.run_until([&] { return pool.told == "b-"; });
  CHECK(pool.watch.is_ejected(pool.stats(1)));
  CHECK(pool.state.get()->ejected() == 2);
  pool.watch.hold_back({});
  CHECK_FALSE(pool.state.get()->is_ejected(joining));
  CHECK(pool.state.get()->ejected() == 1);
}
