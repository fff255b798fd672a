// nessie-sd over the memory fabric: what an op costs from another node and on the own one; and its table, behind KvStore.
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "bench_paradigms/rpc/mailbox.h"
#include "bench_paradigms/stores/cas/cuckoo_store.h"
#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

Plan plan_with(bool has_own_node) {
  Plan plan{.servers = 2, .clients = 3, .window = 4};
  plan.tuning.has_own_node = has_own_node;
  return plan;
}

struct Cost {
  uint64_t of_client, of_server;
  bool operator==(const Cost&) const = default;
};
// The WRITEs of one op alone; there are no other verbs.
Cost cost_of(InMemory& laboratory, uint32_t client, OpKind kind, uint32_t key, Outcome outcome) {
  const VerbCounts client_before = laboratory.counts_of_clients();
  const VerbCounts server_before = laboratory.counts_of_servers();
  CHECK(laboratory.one(client, kind, key).outcome == outcome);
  const VerbCounts of_client = laboratory.counts_of_clients() - client_before;
  const VerbCounts of_server = laboratory.counts_of_servers() - server_before;
  CHECK(of_client.doorbells == of_client.of(Verb::kWrite));
  CHECK(of_server.doorbells == of_server.of(Verb::kWrite));
  CHECK(of_client.inlined + of_server.inlined == 0);
  return {of_client.of(Verb::kWrite), of_server.of(Verb::kWrite)};
}

std::string text_of(CuckooStore& store, const std::string& key, uint32_t value_bytes) {
  std::string value(value_bytes, '\0');
  const auto size = store.get(key, std::as_writable_bytes(std::span(value)));
  return size ? value.substr(0, *size) : "none";
}

std::string padded(uint32_t number, size_t bytes) {
  std::string text = std::to_string(number);
  return text + std::string(bytes - text.size(), '.');
}

}  // namespace

TEST_CASE("every op of a key that another node has is one WRITE each way") {
  InMemory laboratory("nessie-sd", plan_with(false), 100);
  laboratory.one(0, OpKind::kGet, 0);
  for (uint32_t key = 0; key < 20; ++key) {
    for (const auto& [kind, outcome] :
         {std::pair(OpKind::kGet, Outcome::kHit), std::pair(OpKind::kPut, Outcome::kDone),
          std::pair(OpKind::kErase, Outcome::kDone), std::pair(OpKind::kGet, Outcome::kMiss),
          std::pair(OpKind::kErase, Outcome::kMiss)}) {
      CHECK(cost_of(laboratory, key % 3, kind, key, outcome) == Cost{1, 1});
    }
  }
}

TEST_CASE("a key whose core is of the client's own node takes no verb; another one, a WRITE each way") {
  InMemory laboratory("nessie-sd", plan_with(true), 100);
  laboratory.one(0, OpKind::kGet, 0);
  uint32_t own = 0;
  for (uint32_t key = 0; key < 60; ++key) {
    const uint32_t client = key % 3;
    const bool is_own = partition_of(laboratory.plan(), laboratory.keys().key(key)) == client % 2;
    own += is_own ? 1 : 0;
    const Cost expected = is_own ? Cost{0, 0} : Cost{1, 1};
    CHECK(cost_of(laboratory, client, OpKind::kGet, key, Outcome::kHit) == expected);
    CHECK(cost_of(laboratory, client, OpKind::kPut, key, Outcome::kDone) == expected);
    CHECK(cost_of(laboratory, client, OpKind::kErase, key, Outcome::kDone) == expected);
    CHECK(cost_of(laboratory, client, OpKind::kGet, key, Outcome::kMiss) == expected);
  }
  CHECK(own > 10);
  CHECK(own < 50);
}

TEST_CASE("ops over both ways at once are answered right") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    InMemory laboratory("nessie-sd", plan_with(true), 50, seed);
    const Seen seen = laboratory.run({.gets = 0.5, .erases = 0.2, .ops = 2000});
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK(seen.hits + seen.misses + seen.done == 2000);
    CHECK(seen.clients.of(Verb::kWrite) > 500);
    CHECK(seen.clients.of(Verb::kWrite) < 1500);
  }
}

TEST_CASE("the own node's core that stands still answers nothing, and all of it when it goes on") {
  InMemory laboratory("nessie-sd", plan_with(true), 50);
  laboratory.stop_serving(true);
  CHECK(laboratory.run({.ops = 6, .steps = 20'000}).ops == 0);
  laboratory.stop_serving(false);
  const Seen seen = laboratory.run({.ops = 100});
  CHECK(seen.ops >= 100);
  CHECK(seen.first_wrong == "");
}

TEST_CASE("a mailbox is found by the number it was offered under, and by no other; not when it is gone") {
  auto mailbox = std::make_shared<Mailbox>(RpcShape{.request_bytes = 8, .response_bytes = 8, .slots = 1});
  const uint64_t number = offer_mailbox(mailbox);
  CHECK(find_mailbox(number) == mailbox);
  CHECK(find_mailbox(number + 1) == nullptr);
  CHECK(find_mailbox(0) == nullptr);
  mailbox.reset();
  CHECK(find_mailbox(number) == nullptr);
}

TEST_CASE(
    "the table: 20,000 random puts, erases and gets at any load are as a map's; a put without room changes nothing") {
  for (const double load : {0.2, 0.5, 0.9}) {
    for (const uint32_t ways : {2u, 3u}) {
      CAPTURE(load);
      CAPTURE(ways);
      Plan plan{.key_bytes = 8, .value_bytes = 24};
      plan.tuning.index_load = load;
      plan.tuning.ways = ways;
      CuckooStore store(plan, 200);
      std::map<std::string, std::string> expected;
      egret::bench::Rng rng(ways);
      uint32_t refused = 0;
      for (uint32_t i = 0; i < 20'000; ++i) {
        const std::string key = padded(rng.below(220), 8);
        const uint32_t draw = rng.below(3);
        if (draw == 0) {
          CHECK(store.erase(key) == (expected.erase(key) > 0));
        } else if (draw == 1) {
          const std::string value = padded(i, 24);
          const bool is_put = store.put(key, value);
          if (is_put) expected[key] = value;
          if (!is_put) CHECK(!expected.contains(key));
          refused += is_put ? 0 : 1;
          if (!is_put && load < 0.5) CHECK(expected.size() == 200);
        }
        const std::string other = padded(rng.below(220), 8);
        const auto at = expected.find(other);
        REQUIRE(text_of(store, other, 24) == (at == expected.end() ? "none" : at->second));
      }
      CHECK((load == 0.9 && ways == 2) == (refused > 0));
    }
  }
}
