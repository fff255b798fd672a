// Others stand in for an owner, and purge it before it returns: the watch over a whole process with a worker, which the
// test plays, as it plays all backends.
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "pool/gutter/gutter_watch.h"
#include "pool_played_gutter.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;
using Kind = HealthJudge::Verdict::Kind;

namespace {

struct Watched final : HealthObserver, GutterObserver {
  explicit Watched(const std::vector<int>& gutter = {3, 4}) {
    stores_played = &stores;
    rpc::SessionOptions session;
    session.connect_timeout_ns = session.op_timeout_ns = 20'000'000;
    health.set_absences(failover);
    health.add_step(failover);
    health.set_options({.eject_after = 3, .eject_share = 50, .probe_first_ns = 1'000'000, .probe_most_ns = 2'000'000},
                       session);
    failover.set_options(session);
    change(gutter);
    for (int number : {0, 1, 2}) stats(number).sessions[0]->is_open.set(1);
  }
  void change(const std::vector<int>& gutter) {
    membership = pool_with_gutter({0, 1, 2}, gutter, *membership);
    failover.set_membership(membership);
    health.set_membership(membership);
  }
  MemberStats& stats(int number) {
    for (const Membership::Entry& entry : membership->all()) {
      if (entry.member.name == "m" + std::to_string(number)) return *entry.stats;
    }
    FAIL("no member " << number);
    std::abort();
  }
  // The owner m1 dies: the worker's session is lost, and probes are refused.
  void lose_owner() {
    if (taken != state.version()) take();
    stores[1].member.behaviour = Behaviour::kRefusesConnection;
    stats(1).sessions[0]->is_open.set(0);
    stats(1).sessions[0]->signs.failures.add();
    state.ring();
  }
  void return_owner() { stores[1].member.behaviour = Behaviour::kAnswers; }
  // As the worker, between two passes: takes the snapshot; what it has sent is answered at once.
  void take() {
    const std::shared_ptr<const Health> now = state.get();
    taken = fenced = state.version();
    for (int number : {0, 1, 2}) {
      const Absent* const absent = now->find(stats(number));
      const bool is_used = absent == nullptr || (absent->opens && opens_sessions);
      stats(number).sessions[0]->is_open.set(is_used ? 1 : 0);
    }
    state.ring();
  }
  const Absent* absent(int number) {
    seen = state.get();
    return seen->find(stats(number));
  }
  bool is_stood_in(size_t entered) {
    const Absent* const its = absent(1);
    return its != nullptr && its->how == Absence::kStoodIn && its->entered.size() == entered;
  }
  void run_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      if (takes && taken != state.version()) take();
      loop.run_once(true);
    }
  }

  void on_health() override {
    const Absent* const owner = absent(1);
    ways += owner == nullptr                ? "s"
            : owner->how == Absence::kFails ? "f"
            : owner->how == Absence::kWaits ? "w"
            : owner->opens                  ? "o"
                                            : "g";
    // Nothing is let in, nor waited for, before what was known of has been deleted.
    if (owner == nullptr) purged_at_return = stores[1].deleted;
  }
  void on_verdict(const Membership::Entry&, const HealthJudge::Verdict&) override {}
  void on_failed_probe(const Membership::Entry& member, const std::string& why) override {
    if (member.member.name == "m1") failed = why;
  }
  void on_absence() override { health.publish(); }
  bool have_all_taken() const override { return taken == state.version(); }
  bool have_all_fenced() const override { return is_fenced && fenced == state.version(); }
  void on_stood_in(const Membership::Entry& owner) override { told += owner.member.name + "-"; }
  void on_cleared(const Membership::Entry& owner, uint64_t keys, bool is_flush) override {
    told += owner.member.name + "+" + (is_flush ? "all" : std::to_string(keys));
  }
  void on_not_entered(const Membership::Entry& gutter, const std::string&) override {
    not_entered.insert(gutter.member.name);
  }
  void on_looked(const Membership::Entry&, uint64_t, bool) override { ++looked; }
  void ask_gutter() override { ++asked; }
  std::shared_ptr<const Listing> listing() const override {
    return lists_anew ? std::make_shared<const Listing>(*listed) : listed;
  }

  PlayedStores stores;
  const base::SystemClock clock;
  events::EventLoop loop;
  HealthState state;
  GutterWatch failover{loop, clock, *this, connect_to_gutter};
  HealthWatch health{loop, clock, state, *this, connect_to_gutter};
  std::shared_ptr<const Membership> membership = std::make_shared<const Membership>();
  std::shared_ptr<const Health> seen;
  std::shared_ptr<const Listing> listed;
  bool lists_anew = false;  // another one whenever it is looked for
  uint64_t taken = 0, fenced = 0;
  bool takes = true;           // the worker takes snapshots by itself
  bool opens_sessions = true;  // with owners that are about to return
  bool is_fenced = true;
  std::string ways;  // how ops on the owner's keys went, one snapshot after the other
  std::string told, failed;
  std::set<std::string> not_entered, purged_at_return;
  int asked = 0, looked = 0;
};

}  // namespace

TEST_CASE("the gutter is entered when no worker sends to the owner any more, and takes its keys from then on") {
  Watched pool;
  pool.takes = false;
  pool.lose_owner();
  pool.run_until([&] { return pool.stats(1).health.failed_probes.get() == 3; });
  CHECK(pool.absent(1)->how == Absence::kFails);
  CHECK(pool.stores[3].entered == 0);
  CHECK(pool.told.empty());
  pool.takes = true;
  pool.run_until([&] { return pool.is_stood_in(2); });
  CHECK(pool.stores[3].entered == kLayout.lanes);
  CHECK(pool.stores[4].entered == kLayout.lanes);
  CHECK(pool.stores[3].tags == std::set<uint64_t>{tag_of("m1")});
  CHECK(pool.absent(1)->tag == tag_of("m1"));
  CHECK(pool.told == "m1-");
  CHECK(pool.stores[0].entered + pool.stores[2].entered == 0);
}

TEST_CASE("one of the gutter that cannot be entered is told of and asked again; the other takes its share meanwhile") {
  Watched pool;
  SUBCASE("it cannot be reached") {
    pool.stores[4].member.behaviour = Behaviour::kRefusesConnection;
  }
  SUBCASE("it gives no right to it") {
    pool.stores[4].refusal = ResultCode::kForbidden;
  }
  SUBCASE("it is of an earlier version") {
    pool.stores[4].refusal = ResultCode::kUnsupported;
  }
  pool.lose_owner();
  pool.run_until([&] { return !pool.not_entered.empty() && pool.is_stood_in(1); });
  CHECK(pool.not_entered == std::set<std::string>{"m4"});
  CHECK(pool.absent(1)->entered == std::vector<const MemberStats*>{&pool.stats(3)});
  pool.stores[4].member.behaviour = Behaviour::kAnswers;
  pool.stores[4].refusal = ResultCode::kOk;
  pool.run_until([&] { return pool.is_stood_in(2); });
  CHECK(pool.told == "m1-");
}

TEST_CASE(
    "an owner is let in when what the gutter has changed is deleted on it, and ops wait for no more than the end") {
  Watched pool;
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.stores[3].logs[1] = {"a", "b"};
  pool.stores[4].logs[2] = {"c"};
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.purged_at_return == std::set<std::string>{"a", "b", "c"});
  CHECK(pool.stores[1].flushes == 0);
  CHECK(pool.told == "m1-m1+3");
  // Fails until the gutter is entered, one by one; then sessions are opened; then ops wait.
  CHECK(pool.ways.find_first_not_of('f') == pool.ways.find('g'));
  CHECK(pool.ways.ends_with("ows"));
}

TEST_CASE("what the gutter changes while ops wait is deleted, too") {
  Watched pool;
  pool.is_fenced = false;
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.stores[3].logs[0] = {"early"};
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) != nullptr && pool.absent(1)->how == Absence::kWaits; });
  pool.stores[3].logs[0].push_back("late");
  pool.is_fenced = true;
  pool.state.ring();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.purged_at_return == std::set<std::string>{"early", "late"});
}

TEST_CASE("if not all that was changed can be known the owner is flushed") {
  Watched pool;
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.stores[3].logs[0] = {"a"};
  SUBCASE("the log has overflowed") {
    pool.stores[4].has_forgotten = true;
  }
  SUBCASE("one of the gutter is another process") {
    pool.stores[4].member.epoch = 2;
  }
  SUBCASE("one of the gutter cannot be reached") {
    pool.stores[4].member.behaviour = Behaviour::kRefusesConnection;
  }
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.stores[1].flushes == kLayout.lanes);
  CHECK(pool.told == "m1-m1+all");
}

TEST_CASE("an owner that cannot be purged stays away, the gutter goes on, and it is tried again") {
  Watched pool;
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.stores[3].logs[0] = {"a"};
  pool.stores[1].refusal = ResultCode::kForbidden;
  pool.return_owner();
  pool.run_until([&] { return pool.failed.starts_with("it answers, but cannot be purged"); });
  CHECK(pool.is_stood_in(2));
  CHECK_FALSE(pool.absent(1)->opens);
  pool.stores[1].refusal = ResultCode::kOk;
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.purged_at_return == std::set<std::string>{"a"});
  CHECK(pool.told == "m1-m1+1");
}

TEST_CASE("ops do not wait for long, and a return for sessions has an end: the gutter goes on") {
  Watched pool;
  SUBCASE("what was sent to the gutter is not answered") {
    pool.is_fenced = false;
  }
  SUBCASE("the worker opens no session") {
    pool.opens_sessions = false;
  }
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.return_owner();
  pool.run_until([&] { return pool.failed == "it answers, but what was changed could not be purged on it in time"; });
  CHECK(pool.is_stood_in(2));
  pool.is_fenced = pool.opens_sessions = true;
  pool.run_until([&] { return pool.absent(1) == nullptr; });
}

TEST_CASE("another gutter is entered anew, and what one that left has changed may be anything") {
  Watched pool;
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.change({3});
  pool.run_until([&] { return pool.is_stood_in(1); });
  CHECK(pool.stores[3].entered == 2 * kLayout.lanes);
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.told.ends_with("m1+all"));
}

TEST_CASE("at the next absence purging goes on where it ended") {
  Watched pool;
  pool.stores[3].logs[0] = {"of others"};  // before this proxy has entered
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.purged_at_return.empty());
  pool.stores[3].logs[0].push_back("late");  // an upload's end
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.purged_at_return == std::set<std::string>{"late"});
}

TEST_CASE("without a gutter nothing is asked, and an owner returns by its probe alone") {
  Watched pool(std::vector<int>{});
  pool.lose_owner();
  pool.run_until([&] { return pool.stats(1).health.failed_probes.get() == 2; });
  CHECK(pool.absent(1)->how == Absence::kFails);
  pool.return_owner();
  pool.run_until([&] { return pool.absent(1) == nullptr; });
  CHECK(pool.told.empty());
  CHECK(pool.asked == 0);
}

TEST_CASE("the gutter is asked at once for what others have changed, and an owner that is not absent is purged of it") {
  Watched pool;
  CHECK(pool.asked == 1);
  pool.stores[3].logs[2] = {"theirs"};
  Listed listed{.gutter = pool.membership->gutter()[0].stats, .epoch = 1, .partition = 2, .partitions = kLayout.lanes};
  listed.owner = {.tag = tag_of("m1"), .end = PlayedStore::kFirst + 1, .purged = PlayedStore::kFirst};
  pool.listed = std::make_shared<const Listing>(Listing{listed});
  SUBCASE("not absent") {
    pool.state.ring();
    pool.run_until([&] { return pool.looked == 1; });
    CHECK(pool.stores[1].deleted == std::set<std::string>{"theirs"});
  }
  SUBCASE("absent: it is purged when it returns") {
    pool.lose_owner();
    pool.run_until([&] { return pool.is_stood_in(2); });
    CHECK(pool.looked == 0);
    CHECK(pool.stores[1].deleted.empty());
  }
}

TEST_CASE(
    "what is listed meanwhile is no reading: an owner is used again when all that the gutter has is purged on it") {
  Watched pool;
  Listed listed{.gutter = pool.membership->gutter()[0].stats, .epoch = 1, .partition = 0, .partitions = kLayout.lanes};
  listed.owner = {.tag = tag_of("m1"), .end = PlayedStore::kFirst + 1, .purged = PlayedStore::kFirst};
  pool.listed = std::make_shared<const Listing>(Listing{listed});
  pool.lose_owner();
  pool.run_until([&] { return pool.is_stood_in(2); });
  pool.is_fenced = false;
  pool.return_owner();
  pool.run_until([&] { return pool.ways.ends_with("w"); });
  pool.stores[3].logs[0] = {"late"};  // while its keys' ops wait
  pool.lists_anew = pool.is_fenced = true;
  pool.run_until([&] {
    pool.state.ring();
    return pool.absent(1) == nullptr;
  });
  CHECK(pool.purged_at_return == std::set<std::string>{"late"});
}
