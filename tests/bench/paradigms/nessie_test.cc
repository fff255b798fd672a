// nessie over the memory fabric: what its ops cost, and that they are right when they meet.
#include <doctest/doctest.h>

#include "bench_paradigms/stores/cas/cas_layout.h"
#include "in_memory.h"
#include "nessie_plan.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

// The verbs of one op of client 0 alone.
struct Cost {
  uint64_t reads, swaps, writes;
  bool operator==(const Cost&) const = default;
};
Cost cost_of(InMemory& laboratory, OpKind kind, uint32_t key, Outcome outcome) {
  const VerbCounts before = laboratory.counts_of_clients();
  CHECK(laboratory.one(0, kind, key, 1000 + key).outcome == outcome);
  const VerbCounts spent = laboratory.counts_of_clients() - before;
  CHECK(laboratory.counts_of_servers().doorbells == 0);
  return {spent.of(Verb::kRead), spent.of(Verb::kCompareSwap), spent.of(Verb::kWrite)};
}

uint32_t walk(InMemory& laboratory, uint32_t client, uint32_t key) {
  return laboratory.server(0).walk_of(laboratory.plan().servers + client, laboratory.keys().key(key));
}

Plan exact_filters() {
  Plan plan = nessie_plan();
  plan.tuning.filter_bits = 15;
  return plan;
}

// All keys but one are erased. The second word of that one refers to it, and its first is free.
uint32_t lone_key_of_second_word(InMemory& laboratory) {
  laboratory.one(0, OpKind::kGet, 0);
  uint32_t key = 0;
  while (walk(laboratory, 0, key) != 2) key += laboratory.plan().clients;
  for (uint32_t other = 0; other < 500; ++other) {
    if (other != key) REQUIRE(laboratory.one(1, OpKind::kErase, other).outcome == Outcome::kDone);
  }
  return key;
}

}  // namespace

TEST_CASE("a get READs words up to the key's, and its entry unless that is local; the mean is the paper's") {
  InMemory laboratory("nessie", nessie_plan(), kNessieKeys);
  uint64_t reads = 0;
  uint64_t walked = 0;
  uint64_t local = 0;
  for (uint32_t key = 0; key < kNessieKeys; ++key) {
    reads += cost_of(laboratory, OpKind::kGet, key, Outcome::kHit).reads;
    walked += walk(laboratory, 0, key);
    local += key % laboratory.plan().clients == 0 ? 1 : 0;
  }
  CHECK(reads == walked);
  const double words = static_cast<double>(reads - (kNessieKeys - local)) / kNessieKeys;
  CHECK(words == doctest::Approx(1.10).epsilon(0.02));
}

TEST_CASE("a get of one's own key is one READ for each word; of a cached one, too") {
  Plan plan = nessie_plan();
  plan.tuning.cache_entries = 2;
  InMemory laboratory("nessie", plan, kNessieKeys);
  laboratory.one(0, OpKind::kGet, 0);
  const uint32_t own = 0;
  const uint32_t others[] = {1, 2, 4};
  for (const uint32_t key : {own, others[0], others[1], others[2]}) {
    const uint64_t first = cost_of(laboratory, OpKind::kGet, key, Outcome::kHit).reads;
    const uint64_t second = cost_of(laboratory, OpKind::kGet, key, Outcome::kHit).reads;
    CHECK(first == walk(laboratory, 0, key));
    CHECK(second == first - (key == own ? 0 : 1));
  }
  // Two copies: the first one has made room.
  CHECK(cost_of(laboratory, OpKind::kGet, others[2], Outcome::kHit).reads == walk(laboratory, 0, others[2]) - 1);
  CHECK(cost_of(laboratory, OpKind::kGet, others[0], Outcome::kHit).reads == walk(laboratory, 0, others[0]));
}

TEST_CASE("put 3 READs and a COMPARE_SWAP, delete 2 and one, a miss 4; and entries of others that are not excluded") {
  InMemory laboratory("nessie", nessie_plan(), kNessieKeys);
  laboratory.one(0, OpKind::kGet, 1);
  uint64_t puts = 0;
  uint64_t of_others = 0;
  for (uint32_t key = 0; key < 300; ++key) {
    const Cost put = cost_of(laboratory, OpKind::kPut, key, Outcome::kDone);
    CHECK(put.swaps == 1);
    puts += put.reads;
    of_others += key % laboratory.plan().clients == 0 ? 0 : 1;
  }
  CHECK(puts >= 900 + of_others);
  CHECK(puts < 910 + of_others);  // 7 filter bits: some 1 in 600 of other keys' words pass
  uint64_t erases = 0;
  uint64_t misses = 0;
  for (uint32_t key = 0; key < 300; ++key) {  // which client 0 holds now
    const Cost erase = cost_of(laboratory, OpKind::kErase, key, Outcome::kDone);
    CHECK(erase.swaps == 1);
    erases += erase.reads;
    const Cost miss = cost_of(laboratory, OpKind::kGet, key, Outcome::kMiss);
    CHECK(miss.swaps == 0);
    misses += miss.reads;
    CHECK(cost_of(laboratory, OpKind::kErase, key, Outcome::kMiss).swaps == 0);
  }
  CHECK(erases >= 600);
  CHECK(erases < 610);
  CHECK(misses >= 1200);
  CHECK(misses < 1210);
}

TEST_CASE("where the filter excludes every other key, each op's verbs are just these") {
  const Plan plan = exact_filters();
  InMemory laboratory("nessie", plan, 500);
  for (uint32_t key = 0; key < 500; key += plan.clients) {
    CHECK(cost_of(laboratory, OpKind::kPut, key, Outcome::kDone) == Cost{3, 1, 0});
  }
  for (uint32_t key = 0; key < 500; key += plan.clients) {
    CHECK(cost_of(laboratory, OpKind::kErase, key, Outcome::kDone) == Cost{2, 1, 0});
    CHECK(cost_of(laboratory, OpKind::kGet, key, Outcome::kMiss) == Cost{4, 0, 0});
  }
}

TEST_CASE("a put that finds a better word free leaves no second one to its key") {
  InMemory laboratory("nessie", exact_filters(), 500);
  const uint32_t key = lone_key_of_second_word(laboratory);
  CHECK(cost_of(laboratory, OpKind::kPut, key, Outcome::kDone) == Cost{3, 2, 0});
  CHECK(cost_of(laboratory, OpKind::kGet, key, Outcome::kHit) == Cost{1, 0, 0});
  CHECK(cost_of(laboratory, OpKind::kErase, key, Outcome::kDone) == Cost{2, 1, 0});
}

TEST_CASE("a key that goes to a word behind the reader is found: all words are READ again before a miss") {
  InMemory laboratory("nessie", exact_filters(), 500);
  const uint32_t key = lone_key_of_second_word(laboratory);
  Op get;
  get.key_number = key;
  get.key = laboratory.keys().key(key);
  REQUIRE(laboratory.client(0).begin(get));
  laboratory.world().settle();  // its first word was READ, which is empty
  REQUIRE(laboratory.one(1, OpKind::kPut, key).outcome == Outcome::kDone);
  Result result;
  for (uint32_t steps = 0; steps < 1000 && laboratory.client(0).poll({&result, 1}) == 0; ++steps) {
    laboratory.world().settle();
  }
  CHECK(result.outcome == Outcome::kHit);
  CHECK(laboratory.trouble().retries == 1);
}

TEST_CASE("entries at the server: two WRITEs a put, and no entry is local") {
  Plan plan = nessie_plan();
  plan.tuning.places_at_server = true;
  plan.tuning.filter_bits = 15;
  InMemory laboratory("nessie", plan, 500);
  laboratory.one(0, OpKind::kGet, 1);
  CHECK(cost_of(laboratory, OpKind::kGet, 0, Outcome::kHit).reads == walk(laboratory, 0, 0));
  CHECK(cost_of(laboratory, OpKind::kPut, 0, Outcome::kDone) == Cost{4, 1, 2});
  CHECK(cost_of(laboratory, OpKind::kGet, 0, Outcome::kHit).reads == walk(laboratory, 0, 0));
}

TEST_CASE("entries of others that are removed are told in batches, and used again") {
  Plan plan = nessie_plan();
  plan.tuning.spare_entries = 100;
  InMemory laboratory("nessie", plan, 500);
  const VerbCounts before = laboratory.counts_of_clients();
  // Each client replaces what the other has put: none has 2,000 entries.
  for (uint32_t i = 0; i < 2000; ++i) CHECK(laboratory.one(i % 2, OpKind::kPut, 7, 1000 + i).outcome == Outcome::kDone);
  const VerbCounts spent = laboratory.counts_of_clients() - before;
  CHECK(spent.of(Verb::kWrite) <= 2000 / 16);
  CHECK(spent.of(Verb::kWrite) > 100);
}

TEST_CASE("2,000 mixed ops of three clients, READs and WRITEs torn: nothing is wrong") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Plan plan = nessie_plan();
    plan.value_bytes = 200;
    plan.seed = seed;
    plan.tuning.places_at_server = seed % 3 == 0;
    plan.tuning.cache_entries = seed % 2 == 0 ? 20 : 0;
    plan.tuning.spare_entries = 100;
    plan.tuning.ways = 2 + seed % 2;
    InMemory laboratory("nessie", plan, 50, seed);
    laboratory.world().set_tearing({.read_piece = 8, .write_piece = 8, .order = static_cast<TearOrder>(seed % 3)});
    const Seen seen = laboratory.run({.gets = 0.5, .erases = 0.2, .ops = 2000});
    CAPTURE(seed);
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK(seen.hits > 0);
    CHECK(seen.misses > 0);
    CHECK(seen.done > 800);
    CHECK(seen.servers.doorbells == 0);
  }
}

TEST_CASE("a key whose words are all taken has another one migrate, and nothing is lost") {
  Plan plan = nessie_plan();
  plan.tuning.index_load = 0.45;
  InMemory laboratory("nessie", plan, 400);
  for (uint32_t key = 1; key < 400; key += 2) REQUIRE(laboratory.one(1, OpKind::kErase, key).outcome == Outcome::kDone);
  uint32_t migrated = 0;
  for (uint32_t key = 1; key < 400; key += 2) {
    migrated += cost_of(laboratory, OpKind::kPut, key, Outcome::kDone).swaps >= 3 ? 1 : 0;
  }
  CHECK(migrated > 5);
  for (uint32_t key = 0; key < 400; ++key) CHECK(laboratory.one(key % 3, OpKind::kGet, key).outcome == Outcome::kHit);
}

TEST_CASE("migrations among puts, gets and deletes of all clients lose nothing") {
  uint64_t swaps = 0;
  uint64_t changes = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan = nessie_plan();
    plan.seed = seed;
    plan.tuning.index_load = 0.4;
    plan.tuning.spare_entries = 300;
    plan.tuning.filter_bits = seed % 2 == 0 ? 0 : 7;
    InMemory laboratory("nessie", plan, 60, seed);
    const Seen seen = laboratory.run({.gets = 0.4, .erases = 0.45, .ops = 2000});
    CAPTURE(seed);
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK(seen.lost + seen.failed == 0);
    swaps += seen.clients.of(Verb::kCompareSwap);
    changes += seen.done;
  }
  CHECK(swaps > changes);  // the migrations' are among them
}

TEST_CASE("a version comes again after 65,536 changes of a word") {
  IndexWord word;
  for (uint32_t i = 0; i < IndexWord::kVersions; ++i) word = IndexWord::after(word, 3, 9);
  CHECK(word.version() == 0);
  CHECK(word.table() == 3);
  CHECK(word.entry() == 9);
  CHECK(IndexWord::after(word, 32767, UINT32_MAX).table() == 32767);
  CHECK(IndexWord::after(word, 32767, UINT32_MAX).entry() == UINT32_MAX);
  CHECK(IndexWord::after(word, 32767, UINT32_MAX).version() == 1);
  Plan plan = nessie_plan();
  plan.tuning.spare_entries = 2000;
  InMemory laboratory("nessie", plan, 20);
  for (uint32_t i = 0; i <= IndexWord::kVersions; ++i) {
    REQUIRE(laboratory.one(0, OpKind::kPut, 5, 1000 + i).outcome == Outcome::kDone);
  }
  std::string last(plan.value_bytes, '\0');
  egret::bench::write_value(last.data(), last.size(), 5, 1000 + IndexWord::kVersions);
  CHECK(laboratory.one(1, OpKind::kGet, 5).value == last);
}
