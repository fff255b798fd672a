// Systems whose clients READ the server's store, over the memory fabric: what each op costs in verbs, that no answer is
// wrong whatever comes in between, what tears and moves do to those that nothing protects, and what goes on when a server
// stands still or a client dies.
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "bench_paradigms/stores/chained_table.h"
#include "in_memory.h"
#include "moved_key.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

constexpr uint32_t kKeys = 400;

Plan plan_of(uint32_t servers, uint32_t clients, uint32_t window, uint32_t value_bytes = 32) {
  Plan plan;
  plan.servers = servers;
  plan.clients = clients;
  plan.window = window;
  plan.value_bytes = value_bytes;
  return plan;
}

struct Cost {
  VerbCounts clients, servers;
  InMemory::Answer answer;
};
Cost cost_of(InMemory& laboratory, OpKind kind, uint32_t key) {
  const VerbCounts clients = laboratory.counts_of_clients();
  const VerbCounts servers = laboratory.counts_of_servers();
  Cost cost;
  cost.answer = laboratory.one(0, kind, key);
  cost.clients = laboratory.counts_of_clients() - clients;
  cost.servers = laboratory.counts_of_servers() - servers;
  return cost;
}

uint32_t walk_of(InMemory& laboratory, uint32_t key) {
  const std::string_view text = laboratory.keys().key(key);
  return laboratory.server(partition_of(laboratory.plan(), text)).walk(text);
}

// Of gets of all keys, each alone: READs as the walk says, and nothing of the server's.
double reads_per_get(const char* id, const Plan& plan) {
  InMemory laboratory(id, plan, kKeys);
  laboratory.one(0, OpKind::kGet, 0);
  uint64_t reads = 0;
  for (uint32_t key = 0; key < kKeys; ++key) {
    const Cost cost = cost_of(laboratory, OpKind::kGet, key);
    CHECK(cost.answer.outcome == Outcome::kHit);
    CHECK(cost.clients.of(Verb::kRead) == walk_of(laboratory, key));
    CHECK(cost.servers.doorbells == 0);
    reads += cost.clients.of(Verb::kRead);
  }
  return static_cast<double>(reads) / kKeys;
}

// Puts and erases among gets, changes interrupted.
Seen mixed(InMemory& laboratory, uint64_t ops = 2000, double gets = 0.5, double erases = 0.2) {
  laboratory.interrupt_changes();
  return laboratory.run({.gets = gets, .erases = erases, .ops = ops});
}

Plan as_paper(Plan plan) {
  plan.tuning.as_paper = true;
  return plan;
}

Plan unchecked(Plan plan) {
  plan.tuning.checks = false;
  return plan;
}

}  // namespace

TEST_CASE("no answer is wrong, with windows, several servers and clients, and changes that are interrupted") {
  for (const char* id : {"pilaf", "pilaf-em", "farm-em", "farm-em-var", "drtm"}) {
    CAPTURE(id);
    for (const uint64_t seed : {1, 2, 3}) {
      InMemory laboratory(id, plan_of(2, 3, 4, seed == 3 ? 200 : 32), 60, seed);
      const Seen seen = mixed(laboratory);
      CHECK(seen.first_wrong == "");
      CHECK(seen.ops == 2000);
      CHECK(seen.failed + seen.lost + seen.full == 0);
      CHECK(seen.hits > 500);
      CHECK(seen.misses > 20);
      CHECK(seen.done > 500);
    }
  }
}

TEST_CASE("pilaf: a get is two READs a probe, an emulated one a READ a probe and one more") {
  const Plan plan = plan_of(2, 1, 1);
  const double pilaf = reads_per_get("pilaf", plan);
  const double emulated = reads_per_get("pilaf-em", plan);
  CHECK(emulated == doctest::Approx(2.6).epsilon(0.05));
  CHECK(pilaf == doctest::Approx(2 * (emulated - 1)).epsilon(0.05));
}

TEST_CASE("pilaf: puts and erases are a SEND each way; a miss is READ again") {
  for (const char* id : {"pilaf", "pilaf-em"}) {
    for (const bool is_as_paper : {false, true}) {
      CAPTURE(id);
      Plan plan = plan_of(1, 1, 1);
      plan.tuning.as_paper = is_as_paper;
      InMemory laboratory(id, plan, kKeys);
      laboratory.one(0, OpKind::kGet, 0);
      const Cost put = cost_of(laboratory, OpKind::kPut, 7);
      const Cost erase = cost_of(laboratory, OpKind::kErase, 7);
      for (const Cost& cost : {put, erase}) {
        CHECK(cost.answer.outcome == Outcome::kDone);
        CHECK(cost.clients.of(Verb::kSend) == 1);
        CHECK(cost.clients.of(Verb::kRead) == 0);
        CHECK(cost.servers.of(Verb::kSend) == 1);
      }
      const Cost miss = cost_of(laboratory, OpKind::kGet, 7);
      CHECK(miss.answer.outcome == Outcome::kMiss);
      CHECK(miss.clients.of(Verb::kRead) == walk_of(laboratory, 7) + (is_as_paper ? 0 : 3));
      CHECK(cost_of(laboratory, OpKind::kErase, 7).answer.outcome == Outcome::kMiss);
    }
  }
}

TEST_CASE("pilaf: what was READ half is seen by the CRCs, and returned without them") {
  for (const char* id : {"pilaf", "pilaf-em"}) {
    CAPTURE(id);
    for (const auto order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
      InMemory laboratory(id, plan_of(1, 3, 4, 200), 20, 5);
      laboratory.world().set_tearing({.read_piece = 8, .order = order});
      const Seen seen = mixed(laboratory, 3000);
      CHECK(seen.first_wrong == "");
      CHECK(seen.ops == 3000);
      CHECK(laboratory.trouble().retries > 0);
    }
    InMemory careless(id, unchecked(plan_of(1, 3, 4, 200)), 20, 5);
    careless.world().set_tearing({.read_piece = 8});
    CHECK(mixed(careless, 3000).wrong > 0);
  }
}

namespace {

// A get of the key that is moved, which has READ the key's first place before the move and the others after it.
Outcome read_around(const MovedKey& move, uint32_t keys, const Plan& plan) {
  InMemory laboratory("pilaf", plan, keys);
  for (const auto& [kind, key] : move.before) REQUIRE(laboratory.one(1, kind, key).outcome == Outcome::kDone);
  Op get;
  get.key_number = move.moved;
  get.key = laboratory.keys().key(move.moved);
  REQUIRE(laboratory.client(0).begin(get));
  laboratory.world().settle();
  REQUIRE(laboratory.one(1, OpKind::kPut, move.inserted).outcome == Outcome::kDone);
  std::vector<Result> results(1);
  for (int steps = 0; steps < 1000; ++steps) {
    if (laboratory.client(0).poll(results) == 1) return results[0].outcome;
    laboratory.world().settle();
  }
  return Outcome::kLost;
}

}  // namespace

TEST_CASE("pilaf: a key that is moved behind a reader is found by the last look, and missed as in the paper") {
  constexpr uint32_t kFew = 60;
  Plan plan = plan_of(1, 2, 1);
  plan.tuning.load = 0.88;
  const auto move = find_moved_key(kFew, plan.key_bytes, plan.tuning.load);
  REQUIRE(move.has_value());
  CHECK(read_around(*move, kFew, plan) == Outcome::kHit);
  CHECK(read_around(*move, kFew, as_paper(plan)) == Outcome::kMiss);
}

TEST_CASE("farm: a get is one READ of H slots, with pointers one more; puts are a WRITE each way") {
  for (const bool is_as_paper : {false, true}) {
    Plan plan = plan_of(1, 1, 1);
    plan.tuning.as_paper = is_as_paper;
    for (const bool is_inline : {true, false}) {
      const char* const id = is_inline ? "farm-em" : "farm-em-var";
      CHECK(reads_per_get(id, plan) == (is_inline ? 1 : 2));
      InMemory laboratory(id, plan, kKeys);
      laboratory.one(0, OpKind::kGet, 0);
      const uint32_t slots = is_inline ? (is_as_paper ? 288 : 336) : (is_as_paper ? 144 + 32 : 192 + 32);
      CHECK(cost_of(laboratory, OpKind::kGet, 3).clients.payload_bytes == slots);
      const Cost put = cost_of(laboratory, OpKind::kPut, 3);
      CHECK(put.clients.of(Verb::kWrite) == 1);
      CHECK(put.servers.of(Verb::kWrite) == 1);
      cost_of(laboratory, OpKind::kErase, 3);
      const Cost miss = cost_of(laboratory, OpKind::kGet, 3);
      CHECK(miss.answer.outcome == Outcome::kMiss);
      CHECK(miss.clients.of(Verb::kRead) == (is_as_paper ? 1 : 2));
    }
  }
}

TEST_CASE("farm: a slot that was READ half is seen by its check, and returned as in the paper") {
  for (const char* id : {"farm-em", "farm-em-var"}) {
    CAPTURE(id);
    for (const auto order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
      InMemory laboratory(id, plan_of(1, 3, 4, 64), 20, 5);
      laboratory.world().set_tearing({.read_piece = 8, .order = order});
      const Seen seen = mixed(laboratory, 3000);
      CHECK(seen.first_wrong == "");
      CHECK(seen.ops == 3000);
      CHECK(laboratory.trouble().retries > 0);
    }
    InMemory paper(id, as_paper(plan_of(1, 3, 4, 64)), 20, 5);
    paper.world().set_tearing({.read_piece = 8});
    CHECK(mixed(paper, 3000).wrong > 0);
  }
}

TEST_CASE("drtm: a get is a READ, a put two atomics and a WRITE, all of the client's; the server inserts and erases") {
  CHECK(reads_per_get("drtm", plan_of(2, 1, 1)) == 1);
  CHECK(reads_per_get("drtm", plan_of(2, 1, 1, 100)) == 2);  // the state once more
  CHECK(reads_per_get("drtm", as_paper(plan_of(2, 1, 1, 100))) == 1);
  Plan cold = plan_of(2, 1, 1);
  cold.tuning.caches_places = false;
  CHECK(reads_per_get("drtm", cold) >= 2);
  cold.tuning.load = 3;  // chains
  CHECK(reads_per_get("drtm", cold) > 2.2);

  InMemory laboratory("drtm", plan_of(1, 1, 1), kKeys);
  laboratory.one(0, OpKind::kGet, 0);
  const Cost put = cost_of(laboratory, OpKind::kPut, 9);
  CHECK(put.clients.of(Verb::kCompareSwap) == 2);
  CHECK(put.clients.of(Verb::kWrite) == 1);
  CHECK(put.clients.of(Verb::kSend) == 0);
  CHECK(put.servers.doorbells == 0);
  const Cost erase = cost_of(laboratory, OpKind::kErase, 9);
  CHECK(erase.clients.of(Verb::kSend) == 1);
  CHECK(erase.servers.of(Verb::kSend) == 1);
  CHECK(cost_of(laboratory, OpKind::kGet, 9).answer.outcome == Outcome::kMiss);
  const Cost insert = cost_of(laboratory, OpKind::kPut, 9);
  CHECK(insert.answer.outcome == Outcome::kDone);
  CHECK(insert.clients.of(Verb::kSend) == 1);
  CHECK(cost_of(laboratory, OpKind::kGet, 9).answer.outcome == Outcome::kHit);
}

TEST_CASE("drtm: lines that are READ whole protect an item of one line; smaller pieces do not") {
  for (const auto order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
    InMemory lines("drtm", plan_of(1, 3, 4), 20, 5);
    lines.world().set_tearing({.read_piece = 64, .write_piece = 64, .order = order});
    CHECK(mixed(lines, 4000).first_wrong == "");
  }
  InMemory words("drtm", plan_of(1, 6, 2), 4, 5);
  words.world().set_tearing({.read_piece = 8, .order = TearOrder::kUp});
  CHECK(mixed(words, 10'000, 0.5, 0).wrong > 0);
}

TEST_CASE("drtm: an item of several lines that was READ half is seen by version and state, and returned without them") {
  const auto torn = [](TearOrder order, uint32_t write_piece) {
    InMemory laboratory("drtm", plan_of(1, 3, 4, 300), 20, 5);
    laboratory.world().set_tearing({.read_piece = 64, .write_piece = write_piece, .order = order});
    const Seen seen = mixed(laboratory, 4000);
    CHECK(laboratory.trouble().retries > 0);
    return seen.wrong;
  };
  CHECK(torn(TearOrder::kUp, 64) == 0);
  CHECK(torn(TearOrder::kEnds, 64) == 0);
  CHECK(torn(TearOrder::kDown, 0) == 0);
  CHECK(torn(TearOrder::kDown, 64) > 0);  // a READ that overtakes a WRITE from behind: nothing shows that
  InMemory paper("drtm", as_paper(plan_of(1, 3, 4, 300)), 20, 5);
  paper.world().set_tearing({.read_piece = 64, .write_piece = 64});
  CHECK(mixed(paper, 4000).wrong > 0);
}

TEST_CASE("drtm: puts of one key at once take turns, and the value is one of theirs") {
  constexpr uint32_t kKey = 3;
  uint64_t retries = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    InMemory laboratory("drtm", plan_of(1, 2, 1, 300), 8, seed);
    CHECK(laboratory.one(0, OpKind::kGet, kKey).outcome == Outcome::kHit);
    laboratory.world().set_tearing({.write_piece = 64, .order = TearOrder::kUp});
    const std::string values[] = {std::string(300, 'a'), std::string(300, 'b')};
    for (uint32_t client = 0; client < 2; ++client) {
      REQUIRE(laboratory.client(client).begin(
          {OpKind::kPut, kKey, laboratory.keys().key(kKey), values[client], 1'000'000}));
    }
    egret::bench::Rng rng(seed);
    uint32_t done = 0;
    for (uint32_t steps = 0; done < 2 && steps < 10'000; ++steps) {
      laboratory.world().advance();
      Result result;
      if (laboratory.client(rng.below(2)).poll({&result, 1}) == 0) continue;
      CHECK(result.outcome == Outcome::kDone);
      ++done;
    }
    REQUIRE(done == 2);
    const std::string value = laboratory.one(0, OpKind::kGet, kKey).value;
    CHECK((value == values[0] || value == values[1]));
    CHECK(laboratory.one(1, OpKind::kGet, kKey).value == value);
    retries += laboratory.trouble().retries;
  }
  CHECK(retries > 0);
}

TEST_CASE("drtm: a client that dies with a lock leaves the item locked for ever: stuck") {
  InMemory laboratory("drtm", plan_of(1, 2, 1), 20);
  CHECK(laboratory.one(0, OpKind::kGet, 4).outcome == Outcome::kHit);
  Op put;
  put.kind = OpKind::kPut;
  put.key_number = 4;
  put.key = laboratory.keys().key(4);
  const std::string value(32, 'x');
  put.value = value;
  put.ticket = 1'000'000;
  REQUIRE(laboratory.client(1).begin(put));
  laboratory.world().settle();  // its lock is there; it never sees that
  laboratory.world().kill(laboratory.plan().servers + 1);
  CHECK(laboratory.one(0, OpKind::kPut, 4).outcome == Outcome::kLost);
  CHECK(laboratory.one(0, OpKind::kGet, 4).outcome == Outcome::kLost);
  CHECK(laboratory.one(0, OpKind::kErase, 4).outcome == Outcome::kLost);
  CHECK(laboratory.trouble().stuck == 3);
  CHECK(laboratory.one(0, OpKind::kPut, 5).outcome == Outcome::kDone);
}

TEST_CASE("drtm-em: a READ; two atomics and nothing stored") {
  InMemory laboratory("drtm-em", plan_of(2, 3, 4), 100);
  laboratory.one(0, OpKind::kGet, 0);
  CHECK(cost_of(laboratory, OpKind::kPut, 3).clients.of(Verb::kCompareSwap) == 2);
  const Seen seen = laboratory.run({.gets = 0.5, .ops = 2000});
  CHECK(seen.first_wrong == "");
  CHECK(seen.ops == 2000);
  CHECK(seen.clients.of(Verb::kRead) == seen.hits);
  CHECK(seen.clients.of(Verb::kCompareSwap) == 2 * seen.done + laboratory.trouble().retries);
  CHECK(seen.clients.of(Verb::kWrite) == 0);
  CHECK(seen.servers.doorbells == 0);
}

TEST_CASE("a server that stands still serves gets of all, and puts of drtm; one that was killed fails both") {
  for (const char* id : {"pilaf", "pilaf-em", "farm-em", "farm-em-var", "drtm"}) {
    CAPTURE(id);
    const bool puts_go_on = std::string_view(id) == "drtm";
    InMemory laboratory(id, plan_of(1, 2, 2), 40);
    CHECK(laboratory.one(0, OpKind::kPut, 7).outcome == Outcome::kDone);
    laboratory.stop_serving(true);
    CHECK(laboratory.run({.ops = 200}).hits == 200);
    if (puts_go_on) {
      const Seen seen = laboratory.run({.gets = 0.5, .ops = 200});
      CHECK(seen.hits + seen.done == 200);
      CHECK(seen.first_wrong == "");
    }
    laboratory.world().kill(0);
    CHECK(laboratory.one(0, OpKind::kGet, 7).outcome == Outcome::kFailed);
    CHECK(laboratory.one(0, OpKind::kGet, 8).outcome == Outcome::kFailed);
    if (puts_go_on) CHECK(laboratory.one(0, OpKind::kPut, 7).outcome == Outcome::kFailed);
  }
}

TEST_CASE("drtm: lock words are as far apart as is wanted, and no less than an item is long") {
  Plan plan = plan_of(1, 2, 2);
  plan.tuning.atomic_stride = 4096;
  CHECK(ChainedShape::of(plan, 10).stride == 4096);
  CHECK(ChainedShape::of(plan, 10).items_bytes() >= 10 * 4096);
  InMemory laboratory("drtm", plan, 50);
  CHECK(mixed(laboratory).first_wrong == "");
  plan.tuning.atomic_stride = 8;
  CHECK(ChainedShape::of(plan, 10).stride >= ChainedShape::of(plan, 10).item_bytes());
}

TEST_CASE("drtm: what a row relies on is lines while an item is one, and rising READs for longer values") {
  const Paradigm& drtm = *find_paradigm("drtm");
  CHECK(drtm.marks_of(plan_of(1, 1, 1, 32)) == (kMarkLine | kMarkHca));
  CHECK(drtm.marks_of(plan_of(1, 1, 1, 33)) == (kMarkRead | kMarkHca));
  CHECK(drtm.marks_of(as_paper(plan_of(1, 1, 1, 33))) == (kMarkRead | kMarkLine | kMarkHca));
  const Paradigm& pilaf = *find_paradigm("pilaf");
  CHECK(pilaf.marks_of(plan_of(1, 1, 1, 32)) == pilaf.marks_of(plan_of(1, 1, 1, 1000)));
}

TEST_CASE("atomics that answer big-endian are understood") {
  for (const char* id : {"drtm", "drtm-em", "nessie", "seq-faa"}) {
    CAPTURE(id);
    InMemory laboratory(id, plan_of(2, 3, 4), 60);
    laboratory.world().capabilities().has_backward_answers = true;
    const bool is_sequencer = std::string_view(id) == "seq-faa";
    const Seen seen = laboratory.run({.gets = 0.5, .ops = 2000, .next_only = is_sequencer, .steps = 2'000'000});
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK(seen.hits + seen.done == 2000);
    Capabilities can = laboratory.world().capabilities();
    CHECK(why_not(*find_paradigm(id), can, Plan{}) == "");
  }
}

TEST_CASE("bytes on the wire have the heads of the device's link layer") {
  const auto of_gets = [](uint32_t packet_head) {
    InMemory laboratory("raw-read", plan_of(1, 1, 1, 5000), 20);
    laboratory.world().capabilities().packet_head = packet_head;
    return laboratory.run({.ops = 100}).clients.wire_bytes;
  };
  // A request with 16 bytes of address, key and length; two packets of answer, each with an AETH; 5,000 bytes.
  CHECK(of_gets(62) == 100 * (62 + 16 + 2 * (62 + 4) + 5000));
  CHECK(of_gets(26) == 100 * (26 + 16 + 2 * (26 + 4) + 5000));
}

TEST_CASE("seq-faa: a number is one FETCH_ADD, and is given once") {
  InMemory laboratory("seq-faa", plan_of(2, 3, 4), 10);
  const Seen seen = laboratory.run({.ops = 2000, .next_only = true});
  CHECK(seen.first_wrong == "");
  CHECK(seen.hits == 2000);
  CHECK(seen.highest - seen.lowest == 1999);
  CHECK(seen.clients.of(Verb::kFetchAdd) == 2000);
  CHECK(seen.servers.doorbells == 0);
}

TEST_CASE("seq-s0: a number is a SEND and a RECV of no bytes each way, but for a guess that was wrong") {
  for (const uint32_t batch : {1, 8}) {
    Plan plan = plan_of(2, 3, 4);
    plan.tuning.batch_add = batch;
    InMemory laboratory("seq-s0", plan, 10);
    const Seen seen = laboratory.run({.ops = 2000, .next_only = true});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits == 2000);
    CHECK(seen.highest - seen.lowest == 1999);
    CHECK(seen.clients.of(Verb::kSend) == 2000);
    CHECK(seen.clients.of(Verb::kReceive) == 2000);
    CHECK(seen.servers.of(Verb::kSend) == 2000);
    CHECK(seen.servers.of(Verb::kReceive) == 2000);
    CHECK(seen.clients.payload_bytes == 0);
    CHECK(seen.servers.payload_bytes > 0);               // the upper half has changed once
    CHECK(seen.servers.payload_bytes <= 8 * 3 * 4 * 2);  // and each request under way then had the old one
  }
}

TEST_CASE("seq-s0: answers that are ready together go by one doorbell, as many as it is told, and none waits") {
  Plan plan = plan_of(1, 8, 4);
  const auto doorbells = [&plan](uint32_t at_most) {
    plan.tuning.doorbell = at_most;
    InMemory laboratory("seq-s0", plan, 10);
    laboratory.serve_every(32);  // requests gather
    const Seen seen = laboratory.run({.ops = 3200, .next_only = true});
    CHECK(seen.hits == 3200);
    CHECK(seen.wrong == 0);
    CHECK(seen.servers.of(Verb::kSend) == 3200);
    return seen.servers.doorbells;
  };
  CHECK(doorbells(1) == 3200);
  CHECK(doorbells(4) < 1600);
  CHECK(doorbells(4) >= 800);
  CHECK(doorbells(16) < 400);
}

TEST_CASE("seq-s0: a request or an answer that is lost is reported, and the next ones are answered") {
  InMemory laboratory("seq-s0", plan_of(1, 2, 2), 10);
  laboratory.world().set_loss(50);
  const Seen seen = laboratory.run({.ops = 1000, .next_only = true});
  CHECK(seen.first_wrong == "");
  CHECK(seen.ops == 1000);
  CHECK(seen.lost > 0);
  CHECK(seen.hits + seen.lost == 1000);
}

TEST_CASE("raw-read with two READs a get: a word, then the value") {
  Plan plan = plan_of(2, 2, 4);
  plan.tuning.raw_reads = 2;
  InMemory laboratory("raw-read", plan, 100);
  const Seen seen = laboratory.run({.ops = 1000});
  CHECK(seen.first_wrong == "");
  CHECK(seen.clients.of(Verb::kRead) == 2000);
  CHECK(seen.clients.payload_bytes == 1000 * (32 + 8));
}

TEST_CASE("a device without atomics or UC has no drtm or farm, and the row says why") {
  Capabilities none;
  none.device = "this one";
  CHECK(why_not(*find_paradigm("drtm"), none, Plan{}) == "this one has no atomics");
  CHECK(why_not(*find_paradigm("farm-em"), none, Plan{}) == "this one has no UC");
  CHECK(why_not(*find_paradigm("pilaf"), none, Plan{}) == "");
}
