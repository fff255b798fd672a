// Who is ejected, and when it returns: every rule, by a clock that the test sets.
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "pool/health_judge.h"

using namespace egret::pool;
using Kind = HealthJudge::Verdict::Kind;

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000 * kMs;
constexpr HealthOptions kOptions{
    .eject_after = 3, .eject_share = 50, .probe_first_ns = 100 * kMs, .probe_most_ns = 10 * kSecond};

// A pool whose signs the test sets. Each member begins with sessions of both its workers.
struct TestPool {
  explicit TestPool(size_t count, HealthOptions options = kOptions, uint64_t seed = 1) : judge(options, seed) {
    for (size_t i = 0; i < count; ++i) {
      stats.push_back(std::make_unique<MemberStats>(2));
      signs.push_back({.member = stats.back().get(), .open = 2});
    }
  }
  // What the verdicts are now; each member's kind, none if nothing was said of it.
  std::vector<HealthJudge::Verdict> look() { return judge.judge(signs, now_ns); }
  // Its sessions are gone, and nobody answers.
  void kill(size_t member) {
    signs[member].open = 0;
    signs[member].failures += 2;
  }
  bool is_ejected(size_t member) const {
    const auto out = judge.ejected();
    return std::ranges::find(out, stats[member].get()) != out.end();
  }
  // Waits for the next probe and lets it end so. Returns how long it took until it was due.
  uint64_t probe(size_t member, bool has_answered) {
    const uint64_t before = now_ns;
    now_ns = judge.next_probe_ns();
    const auto due = judge.due_probes(now_ns, 100);
    REQUIRE(due == std::vector<const MemberStats*>{stats[member].get()});
    told = judge.on_probe(stats[member].get(), has_answered, signs[member], now_ns);
    return now_ns - before;
  }
  void serve(uint64_t ns) {
    for (MemberSigns& each : signs) each.open = 2;
    look();
    now_ns += ns;
  }

  std::vector<std::unique_ptr<MemberStats>> stats;
  std::vector<MemberSigns> signs;
  std::vector<HealthJudge::Verdict> told;  // at the last probe
  HealthJudge judge;
  uint64_t now_ns = kSecond;
};

}  // namespace

TEST_CASE("nobody is ejected who answers") {
  TestPool pool(4);
  CHECK(pool.look().empty());
  pool.signs[1].timeouts = 2;
  pool.signs[2].failures = 7;
  pool.signs[2].open = 1;  // of one worker: another's were refused, or broke
  CHECK(pool.look().empty());
  CHECK(pool.judge.next_probe_ns() == HealthJudge::kNever);
}

TEST_CASE("who is only not asked yet is not ejected") {
  TestPool pool(4);
  pool.signs[1].open = 0;
  CHECK(pool.look().empty());
}

TEST_CASE("with the last session gone a member is ejected at once, and told of once") {
  TestPool pool(4);
  pool.look();
  pool.signs[1].open = 1;
  pool.signs[1].failures = 1;
  CHECK(pool.look().empty());
  pool.signs[1].open = 0;
  pool.signs[1].failures = 2;
  const auto verdicts = pool.look();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].kind == Kind::kEjected);
  CHECK(verdicts[0].member == pool.stats[1].get());
  CHECK(verdicts[0].why == EjectReason::kUnreachable);
  CHECK(pool.look().empty());
  CHECK(pool.judge.ejected() == std::vector<const MemberStats*>{pool.stats[1].get()});
}

TEST_CASE("failures before a session was open do not count") {
  TestPool pool(4);
  pool.signs[1].failures = 5;
  pool.look();
  pool.signs[1].open = 0;
  CHECK(pool.look().empty());
  pool.signs[1].failures = 6;
  CHECK(pool.look().size() == 1);
}

TEST_CASE("so many timeouts in a row as eject_after says eject, whatever else is well") {
  TestPool pool(4);
  pool.signs[3].timeouts = 2;
  CHECK(pool.look().empty());
  SUBCASE("three") {
    pool.signs[3].timeouts = 3;
  }
  SUBCASE("a session that was given up") {
    pool.signs[3].timeouts = egret::rpc::SessionSigns::kStuck;
  }
  SUBCASE("every worker has given its session up before anybody judges") {
    pool.signs[3].timeouts = egret::rpc::SessionSigns::kStuck;
    pool.kill(3);
  }
  const auto verdicts = pool.look();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].why == EjectReason::kTimeouts);
  CHECK(pool.is_ejected(3));
}

TEST_CASE("no more than eject_share are ejected; others stay in service, and are ejected when there is room") {
  TestPool pool(5);  // two may be
  for (const size_t member : {0, 1, 2, 3}) pool.kill(member);
  const auto verdicts = pool.look();
  REQUIRE(verdicts.size() == 4);
  CHECK(verdicts[1].kind == Kind::kEjected);
  CHECK(verdicts[2].kind == Kind::kWithheld);
  CHECK(verdicts[3].kind == Kind::kWithheld);
  CHECK(pool.judge.ejected().size() == 2);
  CHECK(pool.look().empty());  // told of once
  pool.now_ns += kSecond;
  CHECK(pool.judge.due_probes(pool.now_ns, 100).size() == 2);
  pool.judge.on_probe(pool.stats[0].get(), true, pool.signs[0], pool.now_ns);
  const auto next = pool.look();
  REQUIRE(next.size() == 1);
  CHECK(next[0].kind == Kind::kEjected);
  CHECK(next[0].member == pool.stats[2].get());
}

TEST_CASE("spare members do not count, and are ejected whatever the others' share is") {
  TestPool pool(6);  // two of which own no key, so that two of four may be ejected
  pool.signs[4].is_spare = pool.signs[5].is_spare = true;
  for (const size_t member : {0, 1, 2, 4, 5}) pool.kill(member);
  pool.look();
  CHECK(pool.judge.most_ejected() == 2);
  CHECK(pool.judge.ejected().size() == 4);
  CHECK_FALSE(pool.is_ejected(2));
  CHECK(pool.is_ejected(4));
  CHECK(pool.is_ejected(5));
}

TEST_CASE("where spare members stand in, one owner may be ejected however small the share; with a share of 0 none") {
  const auto pool_of = [](size_t owners, uint32_t share) {
    HealthOptions options = kOptions;
    options.eject_share = share;
    auto pool = std::make_unique<TestPool>(owners + 1, options);
    pool->signs[owners].is_spare = true;
    for (size_t member = 0; member < owners; ++member) pool->kill(member);
    pool->look();
    return pool;
  };
  CHECK(pool_of(1, 50)->is_ejected(0));
  CHECK(pool_of(3, 1)->judge.ejected().size() == 1);
  CHECK(pool_of(4, 50)->judge.ejected().size() == 2);
  CHECK(pool_of(1, 0)->judge.ejected().empty());

  const auto lone = pool_of(1, 50);
  lone->signs.pop_back();  // the gutter is taken away
  lone->signs[0].may_be_let_in = true;
  const auto verdicts = lone->look();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].kind == Kind::kLetIn);
  CHECK_FALSE(lone->is_ejected(0));
}

TEST_CASE("the only member is never ejected, nor anybody with a share of 0") {
  TestPool pool(1);
  TestPool none(4, {.eject_share = 0});
  for (TestPool* const each : {&pool, &none}) {
    each->kill(0);
    CHECK(each->look().empty());
    CHECK(each->judge.next_probe_ns() == HealthJudge::kNever);
  }
}

TEST_CASE("probes' pauses grow by half, within a fifth, to the most") {
  TestPool pool(4);
  pool.kill(2);
  pool.look();
  double expected = 100 * kMs;
  for (int i = 0; i < 30; ++i) {
    const auto pause = static_cast<double>(pool.probe(2, false));
    CAPTURE(i);
    CHECK(pause >= 0.79 * expected);
    CHECK(pause <= 1.21 * expected);
    expected = std::min(expected * 1.5, 10.0 * kSecond);
  }
  CHECK(pool.told.empty());
  CHECK(pool.is_ejected(2));
}

TEST_CASE("pauses differ from proxy to proxy") {
  std::set<uint64_t> pauses;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    TestPool pool(4, kOptions, seed);
    pool.kill(2);
    pool.look();
    pauses.insert(pool.judge.next_probe_ns());
  }
  CHECK(pauses.size() > 15);
}

TEST_CASE("a probe is begun once, and only so many at a time") {
  TestPool pool(8);
  for (const size_t member : {0, 1, 2}) pool.kill(member);
  pool.look();
  pool.now_ns += kSecond;
  CHECK(pool.judge.due_probes(pool.now_ns, 2).size() == 2);
  CHECK(pool.judge.due_probes(pool.now_ns, 2).size() == 1);
  CHECK(pool.judge.due_probes(pool.now_ns, 2).empty());
  CHECK(pool.judge.next_probe_ns() == HealthJudge::kNever);
}

TEST_CASE("who answers a probe returns, and what was seen before does not count against it") {
  TestPool pool(4);
  pool.kill(2);
  pool.look();
  pool.probe(2, false);
  const uint64_t ejected_ns = kSecond;
  pool.probe(2, true);
  REQUIRE(pool.told.size() == 1);
  CHECK(pool.told[0].kind == Kind::kReturned);
  CHECK(pool.told[0].why == EjectReason::kUnreachable);
  CHECK(pool.told[0].lasted_ns == pool.now_ns - ejected_ns);
  CHECK(pool.look().empty());  // no session is open yet
  CHECK_FALSE(pool.is_ejected(2));
  pool.signs[2].failures += 1;
  CHECK(pool.look().size() == 1);  // and none could be
}

TEST_CASE("who hangs again soon waits longer each time, and less again after calm times") {
  TestPool pool(4);
  const auto fall = [&] {
    pool.signs[2].timeouts = 3;
    REQUIRE(pool.look().size() == 1);
    pool.signs[2].timeouts = 0;
    return static_cast<double>(pool.probe(2, true));
  };
  CHECK(fall() < 0.2 * kSecond);
  for (const double wanted : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    pool.serve(10 * kSecond);
    const double waited = fall();
    CHECK(waited >= 0.79 * wanted * kSecond);
    CHECK(waited <= 1.21 * wanted * kSecond);
  }
  pool.serve(6 * HealthJudge::kCalmNs);  // of eight times six are taken back, and this one is not soon
  const double waited = fall();
  CHECK(waited >= 0.79 * 2 * kSecond);
  CHECK(waited <= 1.21 * 2 * kSecond);
  pool.serve(100 * HealthJudge::kCalmNs);
  CHECK(fall() < 0.2 * kSecond);
}

TEST_CASE("who dies again and again returns as soon as it answers") {
  TestPool pool(4);
  for (int i = 0; i < 10; ++i) {
    pool.kill(2);
    REQUIRE(pool.look().size() == 1);
    CHECK(pool.probe(2, true) <= 120 * kMs);
    pool.serve(kSecond);
  }
}

TEST_CASE("other options count at once, also for a probe that is waited for") {
  TestPool pool(4);
  pool.kill(2);
  pool.look();
  for (int i = 0; i < 20; ++i) pool.probe(2, false);
  CHECK(pool.judge.next_probe_ns() - pool.now_ns > 5 * kSecond);
  HealthOptions quick = kOptions;
  quick.probe_most_ns = 10 * kMs;
  quick.eject_after = 1;
  pool.judge.set_options(quick, pool.now_ns);
  CHECK(pool.judge.next_probe_ns() - pool.now_ns <= 12 * kMs);
  pool.probe(2, false);
  CHECK(pool.judge.next_probe_ns() - pool.now_ns <= 12 * kMs);
  pool.signs[3].timeouts = 1;
  CHECK(pool.look().size() == 1);
}

TEST_CASE("members that stay keep their verdicts; one that left is forgotten") {
  TestPool pool(5);
  pool.kill(1);
  pool.kill(3);
  pool.look();
  pool.now_ns += kSecond;
  REQUIRE(pool.judge.due_probes(pool.now_ns, 100).size() == 2);
  const MemberSigns gone = pool.signs[1];
  pool.signs.erase(pool.signs.begin() + 1);
  CHECK(pool.look().empty());
  CHECK(pool.judge.ejected() == std::vector<const MemberStats*>{pool.stats[3].get()});
  CHECK(pool.judge.on_probe(gone.member, true, gone, pool.now_ns).empty());
  CHECK(pool.judge.on_probe(pool.stats[3].get(), true, pool.signs[2], pool.now_ns).size() == 1);
}

TEST_CASE("in a pool that becomes smaller those ejected last are let in until eject_share is kept, and told of once") {
  TestPool pool(6);  // three may be
  for (const size_t member : {4, 0, 2}) {
    pool.now_ns += kSecond;
    pool.kill(member);
    REQUIRE(pool.look().size() == 1);
  }
  for (MemberSigns& each : pool.signs) each.may_be_let_in = true;
  const uint64_t ejected_ns = pool.now_ns;
  pool.now_ns += kSecond;
  pool.signs.erase(pool.signs.begin() + 5);
  pool.signs.erase(pool.signs.begin() + 3);
  pool.signs.erase(pool.signs.begin() + 1);  // one of three may be
  const auto verdicts = pool.look();
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].kind == Kind::kLetIn);
  CHECK(verdicts[0].member == pool.stats[2].get());
  CHECK(verdicts[0].why == EjectReason::kUnreachable);
  CHECK(verdicts[0].lasted_ns == pool.now_ns - ejected_ns);
  CHECK(verdicts[1].kind == Kind::kLetIn);
  CHECK(verdicts[1].member == pool.stats[0].get());
  CHECK(pool.judge.ejected() == std::vector<const MemberStats*>{pool.stats[4].get()});
  CHECK(pool.look().empty());
}

TEST_CASE("the same with a smaller share; who was let in is ejected again when there is room") {
  TestPool pool(4);
  pool.kill(1);
  pool.look();
  pool.now_ns += kMs;
  pool.signs[2].timeouts = 3;
  pool.look();
  REQUIRE(pool.judge.ejected().size() == 2);
  for (MemberSigns& each : pool.signs) each.may_be_let_in = true;
  HealthOptions options = kOptions;
  options.eject_share = 25;
  pool.judge.set_options(options, pool.now_ns);
  const auto verdicts = pool.look();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].kind == Kind::kLetIn);
  CHECK_FALSE(pool.is_ejected(2));
  pool.probe(1, true);
  pool.signs[1].open = 2;
  const auto next = pool.look();
  REQUIRE(next.size() == 1);
  CHECK(next[0].kind == Kind::kEjected);
  CHECK(next[0].member == pool.stats[2].get());
  CHECK_MESSAGE(pool.probe(2, true) <= 120 * kMs, "to be let in is no flap");
}

TEST_CASE("who must be purged first is not let in, nor is a spare one, and a probe that is under way does not count") {
  TestPool pool(4);
  pool.signs[3].is_spare = true;
  pool.kill(3);
  HealthOptions all = kOptions;
  all.eject_share = 100;
  pool.judge.set_options(all, pool.now_ns);
  for (const size_t member : {0, 1, 2}) {
    pool.kill(member);
    pool.look();
    pool.now_ns += kMs;
  }
  REQUIRE(pool.judge.ejected().size() == 4);
  for (const size_t member : {0, 1, 3}) pool.signs[member].may_be_let_in = true;
  pool.now_ns += kSecond;
  pool.judge.due_probes(pool.now_ns, 100);
  pool.judge.set_options(kOptions, pool.now_ns);  // one of three may be
  CHECK(pool.look().size() == 2);
  CHECK_FALSE(pool.is_ejected(0));
  CHECK_FALSE(pool.is_ejected(1));
  CHECK(pool.is_ejected(2));
  CHECK(pool.is_ejected(3));
  CHECK(pool.judge.on_probe(pool.stats[0].get(), true, pool.signs[0], pool.now_ns).empty());
}

TEST_CASE("the only one that is left is let in") {
  TestPool pool(2);
  pool.kill(0);
  pool.look();
  REQUIRE(pool.is_ejected(0));
  pool.signs.pop_back();
  pool.signs[0].may_be_let_in = true;
  CHECK(pool.look().size() == 1);
  CHECK_FALSE(pool.is_ejected(0));
}

TEST_CASE("a member's signs are the sums over the workers, and the worst row of timeouts") {
  MemberStats stats(3);
  stats.sessions[0]->is_open.set(1);
  stats.sessions[2]->is_open.set(1);
  stats.sessions[0]->signs.failures.add(2);
  stats.sessions[1]->signs.failures.add(3);
  stats.sessions[1]->signs.timeouts.set(4);
  stats.sessions[2]->signs.timeouts.set(1);
  const MemberSigns signs = signs_of(stats);
  CHECK(signs.member == &stats);
  CHECK(signs.open == 2);
  CHECK(signs.failures == 5);
  CHECK(signs.timeouts == 4);
}
