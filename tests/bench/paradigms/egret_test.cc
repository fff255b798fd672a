// egret over the memory fabric: the sessions, lanes and slot pollers of the daemons on the laboratory's workload: what they
// answer, the verbs that a message costs, and what becomes of torn transfers, slow servers and killed ones.
#include <atomic>

#include <doctest/doctest.h>

#include "bench_paradigms/harness/memory_run.h"
#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

uint64_t of(const VerbCounts& counts, Verb verb) {
  return counts.posted[static_cast<size_t>(PairType::kRc)][static_cast<size_t>(verb)];
}

const Mix kMixed{.gets = 0.5, .erases = 0.2, .ops = 2000};

// 2,000 ops of four clients by the harness, which fills a client's window before it polls, as a worker does.
RunOutcome drive(uint32_t window, const Case& one) {
  Setting setting;
  setting.window = window;
  setting.keys = 500;
  setting.ops = 2000;
  MemoryRunner runner(setting);
  const std::atomic<bool> stop{false};
  const auto answer = runner.run(*find_paradigm("egret"), one, stop);
  REQUIRE(answer);
  REQUIRE(answer.value().not_available == "");
  CHECK(answer.value().outcome.tally.ops == 2000);
  CHECK(answer.value().outcome.tally.wrong() == 0);
  return answer.value().outcome;
}

}  // namespace

TEST_CASE("2,000 mixed ops of several clients on several servers are answered right, with any window") {
  for (const uint32_t window : {1u, 3u, 8u, 100u}) {
    for (const uint64_t seed : {1u, 2u, 3u}) {
      CAPTURE(window);
      CAPTURE(seed);
      InMemory laboratory("egret", {.servers = 2, .clients = 3, .window = window}, 200, seed);
      const Seen seen = laboratory.run(kMixed);
      CHECK(seen.first_wrong == "");
      CHECK(seen.ops == 2000);
      CHECK(seen.hits > 500);
      CHECK(seen.failed + seen.lost + seen.full == 0);
      CHECK(laboratory.trouble().retries == 0);
    }
  }
}

TEST_CASE("a get of a key, a get after its erase, a put and a get of what was put") {
  InMemory laboratory("egret", {.servers = 2, .clients = 2}, 50);
  CHECK(laboratory.one(0, OpKind::kGet, 7).outcome == Outcome::kHit);
  CHECK(laboratory.one(0, OpKind::kErase, 7).outcome == Outcome::kDone);
  CHECK(laboratory.one(1, OpKind::kErase, 7).outcome == Outcome::kMiss);
  CHECK(laboratory.one(1, OpKind::kGet, 7).outcome == Outcome::kMiss);
  CHECK(laboratory.one(1, OpKind::kPut, 7, 9).outcome == Outcome::kDone);
  std::string expected(32, '\0');
  egret::bench::write_value(expected.data(), expected.size(), 7, 9);
  CHECK(laboratory.one(0, OpKind::kGet, 7).value == expected);
}

TEST_CASE(
    "one op at a time: each is a message of one WRITE and one READ, beside those in vain; the server posts nothing") {
  InMemory laboratory("egret", {.servers = 2, .clients = 3, .window = 1}, 100);
  const Seen seen = laboratory.run(kMixed);
  const Trouble trouble = laboratory.trouble();
  CHECK(trouble.messages == 2000);
  CHECK(trouble.wants == 0);
  CHECK(of(seen.clients, Verb::kWrite) == 2000);
  CHECK(of(seen.clients, Verb::kRead) == 2000 + trouble.vain);
  CHECK(seen.clients.doorbells == 4000 + trouble.vain);
  CHECK(trouble.vain > 0);
  CHECK(trouble.vain <
        400);  // lanes learn when to fetch, and aim at one in ten; the first messages are in vain more often
  CHECK(seen.servers.doorbells == 0);
  CHECK(seen.servers.receive_doorbells == 0);
}

TEST_CASE("ops that are begun together are one message: a WRITE and a READ for all of them") {
  const RunOutcome outcome = drive(8, {.gets = 0.5});
  const Trouble& trouble = outcome.trouble;
  CHECK(trouble.messages < 2000 / 4);
  CHECK(trouble.wants == 0);
  CHECK(trouble.retries == 0);
  CHECK(of(outcome.clients, Verb::kWrite) == trouble.messages);
  CHECK(of(outcome.clients, Verb::kRead) >= trouble.messages + trouble.vain);
  CHECK(of(outcome.clients, Verb::kRead) <=
        2 * trouble.messages + trouble.vain);  // one more where the response is longer
  CHECK(outcome.servers.doorbells == 0);
}

TEST_CASE(
    "a response that is longer than the first READ takes one more, until the lane has learned how long they are") {
  for (const uint32_t value : {2000u, 4096u, 60'000u}) {
    CAPTURE(value);
    InMemory laboratory("egret", {.value_bytes = value}, 50);
    const Seen seen = laboratory.run({.ops = 200});
    CHECK(seen.hits == 200);
    CHECK(of(seen.clients, Verb::kWrite) == 200);
    const uint64_t second = of(seen.clients, Verb::kRead) - 200 - laboratory.trouble().vain;
    CHECK(second >= 1);
    CHECK(second <= 8);
    CHECK(of(seen.servers, Verb::kWrite) == 0);
  }
}

TEST_CASE("a server that is slow is asked for replies, and fetched from again when it is fast") {
  InMemory laboratory("egret", {.servers = 1, .clients = 1}, 50);
  CHECK(laboratory.run({.ops = 300}).hits == 300);
  CHECK(laboratory.trouble().wants == 0);
  // It looks once in 20,000 steps: 20 ms, in which a client has fetched in vain more than five times.
  uint32_t steps = 0;
  laboratory.on_step([&] { laboratory.stop_serving(++steps % 20'000 != 0); });
  Seen seen = laboratory.run({.ops = 20});
  CHECK(seen.hits == 20);
  CHECK(laboratory.trouble().wants >= 15);
  CHECK(of(seen.servers, Verb::kWrite) == laboratory.trouble().wants);
  CHECK(seen.clients.receive_doorbells == of(seen.servers, Verb::kWrite));
  laboratory.on_step({});
  laboratory.stop_serving(false);
  seen = laboratory.run({.ops = 500});
  CHECK(seen.hits == 500);
  CHECK(of(seen.servers, Verb::kWrite) < 200);
}

TEST_CASE("torn READs and torn WRITEs are noticed, and none is believed, in whatever order their pieces come") {
  const Plan plan{.servers = 1, .clients = 3, .window = 2, .value_bytes = 256};
  for (const uint32_t piece : {8u, 64u}) {
    for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
      CAPTURE(piece);
      CAPTURE(static_cast<int>(order));
      uint64_t torn_reads = 0;
      uint64_t torn_writes = 0;
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        InMemory reads("egret", plan, 20, seed);
        reads.world().set_tearing({.read_piece = piece, .order = order});
        const Seen read = reads.run(kMixed);
        CHECK(read.first_wrong == "");
        CHECK(read.ops - read.failed == 2000);
        torn_reads += reads.trouble().retries;
        InMemory writes("egret", plan, 20, seed);
        writes.world().set_tearing({.write_piece = piece, .order = order});
        const Seen written = writes.run(kMixed);
        CHECK(written.first_wrong == "");
        CHECK(written.ops - written.failed == 2000);
        torn_writes += writes.trouble().retries;
      }
      // The seq is the first word, and what a response's was sampled after, or a request's before, may be missing.
      CHECK((torn_reads > 0) == (order == TearOrder::kDown));
      CHECK((torn_writes > 0) == (order != TearOrder::kDown));
    }
  }
}

TEST_CASE("torn replies of a slow server are noticed, too") {
  const Plan plan{.servers = 1, .clients = 2, .window = 2, .value_bytes = 256};
  for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
    InMemory laboratory("egret", plan, 20);
    laboratory.world().set_tearing({.read_piece = 64, .write_piece = 64, .order = order});
    uint32_t steps = 0;
    laboratory.on_step([&] { laboratory.stop_serving(++steps % 2000 != 0); });
    const Seen seen = laboratory.run({.gets = 0.5, .ops = 300});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits + seen.done == 300);
    CHECK(of(seen.servers, Verb::kWrite) > 0);
  }
}

TEST_CASE("values that are cut, since a message asks for more than its response holds, are asked for again") {
  // The first message asks for 16 values of 1,000 bytes: a response slot has 4,096.
  const RunOutcome outcome = drive(16, {.value_bytes = 1000, .gets = 1});
  CHECK(outcome.tally.hits == 2000);
  CHECK(outcome.trouble.retries > 0);
  CHECK(outcome.trouble.retries < 2000 / 20);
}

TEST_CASE("an op that does not fit a slot of 64 KiB: not available") {
  MemoryWorld world(1);
  const egret::bench::Keyspace keys(10, 16);
  const Plan plan{.value_bytes = 70'000, .keys = &keys};
  const auto fabric = world.make_fabric(0);
  const auto server = find_paradigm("egret")->make_server(plan, 0, *fabric);
  CHECK(server->prepare().message() == "an op must fit a slot of 64 KiB");
}

TEST_CASE("variants change what is posted and not what is answered") {
  const Tuning tunings[] = {{.is_synchronous = true}, {.is_inline = false}};
  for (const Tuning& tuning : tunings) {
    CAPTURE(&tuning - tunings);
    InMemory laboratory("egret", {.servers = 2, .clients = 2, .window = 4, .tuning = tuning}, 100);
    const Seen seen = laboratory.run(kMixed);
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK((seen.clients.inlined == 0) == !tuning.is_inline);
  }
}

TEST_CASE("a server that stands still answers nothing, and all of it when it goes on") {
  InMemory laboratory("egret", {.servers = 1, .clients = 2, .window = 2}, 50);
  laboratory.stop_serving(true);
  CHECK(laboratory.run({.ops = 4, .steps = 20'000}).ops == 0);
  laboratory.stop_serving(false);
  CHECK(laboratory.run({.ops = 100}).first_wrong == "");
}

TEST_CASE(
    "a server that stands still for two seconds: its ops are lost; for four: the session is, and later ops fail") {
  InMemory laboratory("egret", {.servers = 1, .clients = 1, .window = 2}, 50);
  laboratory.stop_serving(true);
  const Seen seen = laboratory.run({.ops = 2, .steps = 3'000'000});
  CHECK(seen.lost == 2);
  CHECK(laboratory.run({.ops = 4, .steps = 3'000'000}).failed > 0);
}

TEST_CASE(
    "a killed server: what is under way and what is begun fails, whether the client fetches or waits for a reply") {
  for (const bool is_slow : {false, true}) {
    CAPTURE(is_slow);
    InMemory laboratory("egret", {.servers = 1, .clients = 1}, 50);
    uint32_t steps = 0;
    if (is_slow) laboratory.on_step([&] { laboratory.stop_serving(++steps % 20'000 != 0); });
    CHECK(laboratory.run({.ops = 20}).hits == 20);
    CHECK((laboratory.trouble().wants > 0) == is_slow);
    laboratory.on_step({});
    laboratory.stop_serving(true);
    CHECK(laboratory.run({.ops = 1, .steps = 20'000}).ops == 0);  // begun, and waited for
    laboratory.world().kill(0);
    const Seen seen = laboratory.run({.ops = 3, .steps = 2'000'000});
    CHECK(seen.ops == 3);
    CHECK(seen.failed == 3);
  }
}
