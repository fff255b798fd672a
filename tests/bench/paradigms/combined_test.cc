// Rows that are made of others: gets by one paradigm and puts by another; several connections of each client thread.
#include <doctest/doctest.h>

#include "bench_paradigms/fabric/pages.h"
#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

Plan plan_with(uint32_t queue_pairs) {
  Plan plan{.servers = 2, .clients = 2, .window = 4};
  plan.tuning.queue_pairs = queue_pairs;
  return plan;
}

struct Cost {
  VerbCounts clients, servers;
};
Cost cost_of(InMemory& laboratory, OpKind kind, uint32_t key, Outcome outcome) {
  const Cost before{laboratory.counts_of_clients(), laboratory.counts_of_servers()};
  CHECK(laboratory.one(0, kind, key).outcome == outcome);
  return {laboratory.counts_of_clients() - before.clients, laboratory.counts_of_servers() - before.servers};
}

}  // namespace

TEST_CASE("NessieHY: a get costs nessie's READs, a put and an erase nessie-sd's WRITE each way") {
  InMemory laboratory("nessie+nessie-sd", {.servers = 1, .clients = 2, .window = 2}, 200);
  laboratory.one(0, OpKind::kGet, 0);
  for (uint32_t key = 0; key < 50; ++key) {
    const Cost get = cost_of(laboratory, OpKind::kGet, key, Outcome::kHit);
    CHECK(get.clients.of(Verb::kRead) == laboratory.server(0).walk_of(1, laboratory.keys().key(key)));
    CHECK(get.clients.of(Verb::kWrite) + get.servers.doorbells == 0);
    const Cost put = cost_of(laboratory, OpKind::kPut, key, Outcome::kDone);
    CHECK(put.clients.of(Verb::kWrite) == 1);
    CHECK(put.clients.of(Verb::kRead) + put.clients.of(Verb::kCompareSwap) == 0);
    CHECK(put.servers.of(Verb::kWrite) == 1);
    CHECK(cost_of(laboratory, OpKind::kErase, key, Outcome::kDone).clients.of(Verb::kWrite) == 1);
    CHECK(laboratory.one(1, OpKind::kGet, key).outcome == Outcome::kHit);  // a store of its own
  }
}

TEST_CASE("a pair of paradigms needs and relies on what both do; 2,000 mixed ops are answered right") {
  const Paradigm& both = *find_paradigm("pilaf+herd");
  CHECK(both.id == "pilaf+herd");
  CHECK(both.pairs == (find_paradigm("pilaf")->pairs | find_paradigm("herd")->pairs));
  CHECK(both.marks_of(Plan{}) == (find_paradigm("pilaf")->marks | find_paradigm("herd")->marks));
  CHECK(!both.needs_atomics);
  CHECK(find_paradigm("raw-read+nessie")->needs_atomics);
  CHECK(find_paradigm("pilaf+herd") == &both);
  for (const char* id : {"pilaf+herd", "raw-read+drtm", "memc+farm-em", "rfp+reply", "egret+pilaf-vo"}) {
    CAPTURE(id);
    InMemory laboratory(id, plan_with(1), 100);
    const Seen seen = laboratory.run({.gets = 0.5, .ops = 2000});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits + seen.done == 2000);
  }
}

TEST_CASE("no row for what is not in the table, has no puts, or is a pair already") {
  for (const char* id : {"nothing+herd", "herd+nothing", "herd+raw-read", "seq-faa+herd", "herd+", "+", "a+b+c"}) {
    CAPTURE(id);
    CHECK(find_paradigm(id) == nullptr);
  }
  REQUIRE(find_paradigm("pilaf+herd") != nullptr);
  CHECK(find_paradigm("pilaf+herd+memc") == nullptr);
}

TEST_CASE("several connections of each thread: so many times the queue pairs, and each op costs what it did") {
  const auto pairs_of = [](uint32_t queue_pairs) {
    InMemory laboratory("reply", plan_with(queue_pairs), 100);
    const Seen seen = laboratory.run({.gets = 0.5, .erases = 0.2, .ops = 2000});
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 2000);
    CHECK(seen.clients.of(Verb::kWrite) == 2000);
    CHECK(seen.servers.of(Verb::kWrite) == 2000);
    return laboratory.world().pairs();
  };
  CHECK(pairs_of(1) == 2 * 2 * 2);
  CHECK(pairs_of(5) == 5 * pairs_of(1));
}

TEST_CASE("every paradigm works over several connections of each thread") {
  for (const Paradigm& each : paradigms()) {
    CAPTURE(each.id);
    InMemory laboratory(each.id, plan_with(3), 100);
    const bool is_sequencer = each.has(OpKind::kNext);
    const Seen seen =
        laboratory.run({.gets = each.has(OpKind::kPut) ? 0.5 : 1, .ops = 1000, .next_only = is_sequencer});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits + seen.done == 1000);
    CHECK(seen.lost + seen.failed == 0);
  }
}

TEST_CASE("notices of bundles and pairs that are cut or lie about their lengths are refused") {
  for (const char* id : {"reply", "pilaf+herd"}) {
    InMemory laboratory(id, plan_with(id == std::string_view("reply") ? 2 : 1), 20);
    laboratory.one(0, OpKind::kGet, 0);
    const std::string told = laboratory.server(0).notice(2);
    const NodeAddress address;
    for (size_t size = 0; size < 4; ++size) {
      CHECK(!laboratory.client(0).join(0, address, std::string_view(told).substr(0, size)).is_ok());
    }
    std::string lie = told;
    lie[3] = '\x7f';
    CHECK(!laboratory.client(0).join(0, address, lie).is_ok());
    CHECK(!laboratory.client(0).join(0, address, "").is_ok());
  }
}

TEST_CASE("pages: zeroed and page-aligned, huge ones only where wanted and worth it, and what is refused is known") {
  const HugePages before = huge_pages();
  const Pages small(kHugePage, false);
  const Pages little(kHugePage / 2 - 1, true);
  CHECK(huge_pages().wanted == before.wanted);
  CHECK(!small.is_huge());
  CHECK(!little.is_huge());
  const Pages wanted(kHugePage + 1, true);
  CHECK(huge_pages().wanted == before.wanted + kHugePage + 1);
  CHECK(huge_pages().given == before.given + (wanted.is_huge() ? kHugePage + 1 : 0));
  for (const Pages* each : {&small, &little, &wanted}) {
    REQUIRE(each->data() != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(each->data()) % 4096 == 0);
    for (size_t at = 0; at < each->size(); at += 1000) REQUIRE(each->data()[at] == std::byte{0});
  }
  CHECK(to_line({}) == "");
  CHECK(to_line({.wanted = 4 << 20, .given = 4 << 20}) == "huge pages: 4.0 of 4.0 MiB");
  CHECK(to_line({.wanted = 4 << 20, .given = 2 << 20}).find("vm.nr_hugepages") != std::string::npos);
}

TEST_CASE("slots and stores are asked for in huge pages where that is wanted") {
  for (const char* id : {"pilaf", "reply", "memc", "nessie-sd", "farm-em"}) {
    CAPTURE(id);
    const uint64_t before = huge_pages().wanted;
    Plan plan{.value_bytes = 1000};
    InMemory(id, plan, 3000).run({.ops = 10});
    CHECK(huge_pages().wanted == before);
    plan.tuning.has_huge_pages = true;
    CHECK(InMemory(id, plan, 3000).run({.ops = 10}).hits == 10);
    CHECK(huge_pages().wanted >= before + 3'000'000);
  }
}
