// nessie where ops meet, and where what it relies on does not hold.
#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "in_memory.h"
#include "nessie_plan.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

constexpr uint32_t kKey = 7;

std::string value_of(const Plan& plan, uint64_t version) {
  std::string value(plan.value_bytes, '\0');
  egret::bench::write_value(value.data(), value.size(), kKey, version);
  return value;
}

// Two clients put the same key at the same time, a third one GETs it again and again. Which values it saw, each where it
// changes; then what each of the three sees.
struct Race {
  std::vector<uint64_t> seen;
  std::array<uint64_t, 3> last{};
};

uint64_t version_in(const Plan& plan, const Result& result) {
  for (const uint64_t version : {kLoadedVersion, uint64_t{1001}, uint64_t{1002}}) {
    if (result.outcome == Outcome::kHit && result.value == value_of(plan, version)) return version;
  }
  return 0;  // a miss, a torn value
}

Race race(InMemory& laboratory, uint64_t seed) {
  Race out;
  egret::bench::Rng rng(seed);
  const Plan& plan = laboratory.plan();
  const Op get{.kind = OpKind::kGet, .key_number = kKey, .key = laboratory.keys().key(kKey), .value = {}, .ticket = 3};
  laboratory.one(2, OpKind::kGet, kKey);  // all is prepared
  std::array<bool, 3> is_going{};
  for (uint32_t putter = 0; putter < 2; ++putter) {
    const std::string value = value_of(plan, 1001 + putter);
    REQUIRE(laboratory.client(putter).begin({OpKind::kPut, kKey, get.key, value, 1}));
    is_going[putter] = true;
  }
  for (uint32_t steps = 0; (is_going[0] || is_going[1] || is_going[2]) && steps < 1'000'000; ++steps) {
    if (!is_going[2] && (is_going[0] || is_going[1])) is_going[2] = laboratory.client(2).begin(get);
    if (rng.below(2) == 0) laboratory.world().advance();
    const uint32_t client = rng.below(3);
    Result result;
    if (laboratory.client(client).poll({&result, 1}) == 0) continue;
    is_going[client] = false;
    if (client < 2) {
      CHECK(result.outcome == Outcome::kDone);
    } else if (const uint64_t version = version_in(plan, result); out.seen.empty() || out.seen.back() != version) {
      out.seen.push_back(version);
    }
  }
  REQUIRE(!is_going[0]);
  REQUIRE(!is_going[1]);
  for (uint32_t client = 0; client < 3; ++client) {
    const auto answer = laboratory.one(client, OpKind::kGet, kKey);
    out.last[client] = version_in(plan, {0, answer.outcome.value_or(Outcome::kFailed), answer.value});
  }
  return out;
}

// No value comes back, and all agree on the last one.
bool is_right(const Race& race) {
  std::vector<uint64_t> order = race.seen;
  order.push_back(race.last[0]);
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<uint64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const bool comes_back = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  const bool has_other = sorted.front() == 0;
  const bool is_new = race.last[0] == 1001 || race.last[0] == 1002;
  return !comes_back && !has_other && is_new && race.last[1] == race.last[0] && race.last[2] == race.last[0];
}

struct Outcomes {
  uint64_t wrong = 0, retries = 0;
};
// Puts that replace their own entries while READs of these are under way, by twenty seeds.
Outcomes contend(Plan plan, const Tearing& tearing, uint32_t keys = 4) {
  plan.value_bytes = 200;
  Outcomes sum;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    plan.seed = seed;
    InMemory laboratory("nessie", plan, keys, seed);
    laboratory.world().set_tearing(tearing);
    sum.wrong += laboratory.run({.gets = 0.6, .ops = 1000}).wrong;
    sum.retries += laboratory.trouble().retries;
  }
  return sum;
}

// Until that client has posted its swap and it has taken place.
void put_up_to_swap(InMemory& laboratory, uint32_t client) {
  const std::string value = value_of(laboratory.plan(), 2);
  const uint64_t before = laboratory.counts_of_clients().of(Verb::kCompareSwap);
  REQUIRE(laboratory.client(client).begin({OpKind::kPut, kKey, laboratory.keys().key(kKey), value, 1}));
  std::array<Result, 1> none;
  while (laboratory.counts_of_clients().of(Verb::kCompareSwap) == before) {
    laboratory.world().settle();
    REQUIRE(laboratory.client(client).poll(none) == 0);
  }
  laboratory.world().settle();
}

}  // namespace

TEST_CASE("two puts of one key at once, and gets: no value comes back, and all see the same one in the end") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Plan plan = nessie_plan();
    plan.seed = seed;
    plan.value_bytes = 128;
    plan.tuning.places_at_server = seed % 4 == 0;
    InMemory laboratory("nessie", plan, 20, seed);
    laboratory.world().set_tearing({.read_piece = 8, .write_piece = 8, .order = static_cast<TearOrder>(seed % 3)});
    if (seed % 2 == 0) laboratory.one(2, OpKind::kErase, kKey), laboratory.one(2, OpKind::kPut, kKey, kLoadedVersion);
    CAPTURE(seed);
    CHECK(is_right(race(laboratory, seed)));
  }
}

TEST_CASE("swaps that do not compare are noticed") {
  uint64_t wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan = nessie_plan();
    plan.tuning.index_load = 0.4;
    plan.tuning.spare_entries = 100;
    InMemory laboratory("nessie", plan, 30, seed);
    laboratory.world().set_blind_swaps(true);
    wrong += laboratory.run({.gets = 0.4, .erases = 0.5, .ops = 2000, .steps = 200'000}).wrong;
  }
  CHECK(wrong > 0);
}

TEST_CASE("entries that are used again at once are READ torn; after the delay they are not") {
  Plan plan = nessie_plan();
  plan.tuning.spare_entries = 2;
  plan.tuning.reuse_delay_ns = 0;
  CHECK(contend(plan, {.read_piece = 8}).wrong > 0);
  plan.tuning.spare_entries = 40;
  plan.tuning.reuse_delay_ns = 20'000'000;
  CHECK(contend(plan, {.read_piece = 8}).wrong == 0);
}

TEST_CASE("an op that takes longer than the delay begins anew, and is right") {
  Plan plan = nessie_plan();
  plan.tuning.spare_entries = 4;
  const Outcomes usual = contend(plan, {.read_piece = 8});
  plan.tuning.reuse_delay_ns = 600 * kTickNs;  // less than some gets take
  const Outcomes seen = contend(plan, {.read_piece = 8});
  CHECK(seen.wrong == 0);
  CHECK(seen.retries > 2 * usual.retries);
}

TEST_CASE("who polls for the last byte takes a READ that brings it first for whole; in rising order it is") {
  Plan plan = nessie_plan();
  plan.tuning.polls_watermark = true;
  CHECK(contend(plan, {.read_piece = 64, .order = TearOrder::kUp}).wrong == 0);
  CHECK(contend(plan, {.read_piece = 64, .order = TearOrder::kDown}).wrong > 0);
  plan.tuning.polls_watermark = false;
  CHECK(contend(plan, {.read_piece = 64, .order = TearOrder::kDown}).wrong == 0);
}

TEST_CASE("a copy in a cache that is told by its entry alone is old when the entry is used again") {
  Plan plan = nessie_plan();
  plan.tuning.cache_entries = 10;
  plan.tuning.spare_entries = 3;
  plan.tuning.reuse_delay_ns = 300 * kTickNs;
  CHECK(contend(plan, {}).wrong == 0);
  plan.tuning.as_paper = true;
  CHECK(contend(plan, {}).wrong > 0);
}

TEST_CASE("a client that is killed after its swap leaves the key unfinished: gets give up, a put repairs it") {
  Plan plan = nessie_plan();
  plan.tuning.places_at_server = true;
  InMemory laboratory("nessie", plan, 50);
  CHECK(laboratory.one(0, OpKind::kGet, kKey).outcome == Outcome::kHit);
  put_up_to_swap(laboratory, 1);
  laboratory.world().kill(plan.servers + 1);
  CHECK(laboratory.one(0, OpKind::kGet, kKey).outcome == Outcome::kLost);
  CHECK(laboratory.trouble().stuck == 1);
  CHECK(laboratory.one(2, OpKind::kPut, kKey, 9).outcome == Outcome::kDone);
  CHECK(laboratory.one(0, OpKind::kGet, kKey).value == value_of(plan, 9));
}

TEST_CASE("a client that is killed takes its entries along; other keys are there, and its own can be put") {
  Plan plan = nessie_plan();
  plan.tuning.filter_bits = 12;
  InMemory laboratory("nessie", plan, 60);
  CHECK(laboratory.one(0, OpKind::kGet, kKey).outcome == Outcome::kHit);
  laboratory.world().kill(plan.servers + 1);
  uint32_t failed = 0;
  for (uint32_t key = 0; key < 60; ++key) {
    const auto outcome = laboratory.one(0, OpKind::kGet, key).outcome;
    CHECK(outcome == (key % plan.clients == 1 ? Outcome::kFailed : Outcome::kHit));
    failed += outcome == Outcome::kFailed ? 1 : 0;
  }
  CHECK(failed == 20);
}

TEST_CASE("gets and puts go on while all servers stand still") {
  InMemory laboratory("nessie", nessie_plan(), 100);
  laboratory.stop_serving(true);
  const Seen seen = laboratory.run({.gets = 0.5, .ops = 2000});
  CHECK(seen.first_wrong == "");
  CHECK(seen.hits + seen.done == 2000);
}
