// That no two clients of a sequencer are given the same number, also where they are on hosts that know nothing of each other.
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "bench_paradigms/harness/driver.h"
#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

uint64_t no_time() {
  return 0;
}

uint64_t duplicates(const RunOutcome& outcome) {
  return outcome.tally.faults[static_cast<size_t>(Fault::kDuplicate)];
}

Numbers numbers_of(std::initializer_list<uint64_t> given) {
  Numbers out;
  for (const uint64_t each : given) out.take(each);
  return out;
}

// A run whose clients were given these.
RunOutcome outcome_of(std::initializer_list<Numbers> clients) {
  RunOutcome out;
  for (const Numbers& each : clients) {
    NodeOutcome node;
    node.tally.numbers = each;
    out.add(node);
  }
  return out;
}

// 600 numbers for three clients, each of which is the only one that its host knows of.
RunOutcome run_apart(InMemory& laboratory) {
  laboratory.one(0, OpKind::kNext, 0);  // now there are nodes
  std::vector<std::unique_ptr<Knowledge>> hosts;
  std::vector<Driver> drivers;
  const WorkloadSpec spec{.clients = 3, .next_only = true};
  for (uint32_t client = 0; client < 3; ++client) {
    hosts.push_back(std::make_unique<Knowledge>(1, Writers::kOne, false));
    drivers.emplace_back(Driver::Parts{laboratory.plan(), laboratory.client(client), *hosts.back(), spec, no_time},
                         client, Pace{.window = 2, .ops = 200});
  }
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    laboratory.world().advance();
    if (i % 3 == 0) laboratory.server(0).serve();
    drivers[i % 3].step();
    if (drivers[0].is_finished() && drivers[1].is_finished() && drivers[2].is_finished()) break;
  }
  RunOutcome out;
  for (const Driver& each : drivers) {
    NodeOutcome node;
    node.tally = each.tally();
    CHECK(node.tally.hits == 200);
    out.add(node);
  }
  return out;
}

}  // namespace

TEST_CASE("numbers of all clients are each once, or one was given twice") {
  CHECK(numbers_of({}).are_each_once());
  CHECK(numbers_of({7}).are_each_once());
  CHECK(numbers_of({9, 7, 8}).are_each_once());
  CHECK(!numbers_of({7, 9, 9}).are_each_once());
  CHECK(!numbers_of({7, 8, 10, 10, 11, 8}).are_each_once());  // 8 and 10 twice, 9 never
  CHECK(numbers_of({7, 7, 8}).are_too_many());
  CHECK(!numbers_of({7, 8}).are_too_many());
}

TEST_CASE("two hosts' clients that were given one number: a duplicate, though each host found none") {
  RunOutcome right = outcome_of({numbers_of({5, 7}), numbers_of({6, 8})});
  right.judge_numbers();
  CHECK(duplicates(right) == 0);
  RunOutcome wrong = outcome_of({numbers_of({5, 7}), numbers_of({6, 7, 9})});
  wrong.judge_numbers();
  CHECK(duplicates(wrong) == 1);
  CHECK(wrong.tally.first_wrong == Fault::kDuplicate);
  wrong.judge_numbers();
  CHECK(duplicates(wrong) == 1);
}

TEST_CASE("where something was lost numbers may be left out, and only too many of them are duplicates") {
  RunOutcome with_gap = outcome_of({numbers_of({5, 7}), numbers_of({8})});
  with_gap.tally.lost = 1;
  with_gap.judge_numbers();
  CHECK(duplicates(with_gap) == 0);
  RunOutcome too_many = outcome_of({numbers_of({5, 6}), numbers_of({5, 6})});
  too_many.tally.lost = 1;
  too_many.judge_numbers();
  CHECK(duplicates(too_many) == 1);
}

TEST_CASE("a sequencer that gives a number twice is noticed across hosts; one that works is not") {
  for (const char* id : {"seq-faa", "seq-rpc", "seq-s0"}) {
    CAPTURE(id);
    Plan plan{.servers = 1, .clients = 3, .window = 2};
    plan.tuning.batch_add = 4;
    InMemory laboratory(id, plan, 1);
    RunOutcome outcome = run_apart(laboratory);
    outcome.judge_numbers();
    CHECK(outcome.tally.wrong() == 0);
    CHECK(outcome.tally.numbers.count == 600);
  }
  uint64_t only_together = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    InMemory faulty("seq-faa", {.servers = 1, .clients = 3, .window = 2}, 1, seed);
    faulty.world().set_forgotten_adds(200);  // answered, and not made: the next client is given the same number
    RunOutcome outcome = run_apart(faulty);
    const bool is_seen_apart = duplicates(outcome) > 0;
    outcome.judge_numbers();
    const bool is_forgotten = outcome.tally.numbers.most - outcome.tally.numbers.least < 599;
    CHECK((duplicates(outcome) > 0) == is_forgotten);
    only_together += !is_seen_apart && is_forgotten ? 1 : 0;
  }
  CHECK(only_together > 0);
}
