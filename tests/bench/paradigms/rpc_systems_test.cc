// The systems that are calls and nothing else, over the memory fabric: what they answer, the verbs they post for it, and
// what becomes of them when transfers are torn or lost, servers stand still or are killed.
#include <doctest/doctest.h>

#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

uint64_t of(const VerbCounts& counts, PairType type, Verb verb) {
  return counts.posted[static_cast<size_t>(type)][static_cast<size_t>(verb)];
}

constexpr const char* kAll[] = {"reply", "rfp", "rfp-hybrid", "memc", "pilaf-vo", "herd", "nessie-sd"};
const Mix kMixed{.gets = 0.5, .erases = 0.2, .ops = 2000};

}  // namespace

TEST_CASE("2,000 mixed ops of several clients on several servers are answered right, with any window") {
  for (const char* id : kAll) {
    for (const uint32_t window : {1u, 3u, 8u}) {
      for (const uint64_t seed : {1u, 2u, 3u}) {
        CAPTURE(id);
        CAPTURE(window);
        InMemory laboratory(id, {.servers = 2, .clients = 3, .window = window}, 100, seed);
        const Seen seen = laboratory.run(kMixed);
        CHECK(seen.first_wrong == "");
        CHECK(seen.ops == 2000);
        CHECK(seen.hits > 500);
        CHECK(seen.failed + seen.lost + seen.full == 0);
        CHECK(laboratory.trouble().retries == 0);
      }
    }
  }
}

TEST_CASE("a get of a key, a get after its erase, a put and a get of what was put") {
  for (const char* id : kAll) {
    CAPTURE(id);
    InMemory laboratory(id, {.servers = 2, .clients = 2}, 50);
    CHECK(laboratory.one(0, OpKind::kGet, 7).outcome == Outcome::kHit);
    CHECK(laboratory.one(0, OpKind::kErase, 7).outcome == Outcome::kDone);
    CHECK(laboratory.one(1, OpKind::kErase, 7).outcome == Outcome::kMiss);
    CHECK(laboratory.one(1, OpKind::kGet, 7).outcome == Outcome::kMiss);
    CHECK(laboratory.one(1, OpKind::kPut, 7, 9).outcome == Outcome::kDone);
    std::string expected(32, '\0');
    egret::bench::write_value(expected.data(), expected.size(), 7, 9);
    CHECK(laboratory.one(0, OpKind::kGet, 7).value == expected);
    CHECK(laboratory.trouble().retries == 0);
  }
}

TEST_CASE("reply and nessie-sd: every op is one WRITE of the client and one of the server") {
  for (const char* id : {"reply", "nessie-sd"}) {
    InMemory laboratory(id, {.servers = 2, .clients = 3, .window = 4}, 100);
    const Seen seen = laboratory.run(kMixed);
    CHECK(of(seen.clients, PairType::kRc, Verb::kWrite) == 2000);
    CHECK(seen.clients.doorbells == 2000);
    CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) == 2000);
    CHECK(seen.servers.doorbells == 2000);
    CHECK((seen.servers.inlined == 0) == (std::string_view(id) == "nessie-sd"));
    CHECK((seen.clients.inlined == 0) == (std::string_view(id) == "nessie-sd"));
    CHECK(seen.clients.signalled <= 2000 / 64);
  }
}

TEST_CASE("rfp: every op is one WRITE and one READ, beside those in vain; the server posts nothing") {
  InMemory laboratory("rfp", {.servers = 2, .clients = 3, .window = 4}, 100);
  const Seen seen = laboratory.run(kMixed);
  CHECK(of(seen.clients, PairType::kRc, Verb::kWrite) == 2000);
  CHECK(of(seen.clients, PairType::kRc, Verb::kRead) == 2000 + laboratory.trouble().vain);
  CHECK(laboratory.trouble().vain > 0);
  CHECK(seen.servers.doorbells == 0);
  CHECK(seen.servers.receive_doorbells == 0);
}

TEST_CASE("rfp: a READ has RFS bytes, the value's size and 4; what is longer takes one more") {
  for (const uint32_t value : {32u, 128u, 508u}) {
    InMemory laboratory("rfp", {.value_bytes = value}, 50);
    const Seen seen = laboratory.run({.ops = 200});
    CHECK(seen.hits == 200);
    const VerbCounts& counts = seen.clients;
    CHECK(counts.payload_bytes == 200 * (2 + 4 + 16 + 1) + of(counts, PairType::kRc, Verb::kRead) * (value + 4));
  }
  InMemory laboratory("rfp", {.value_bytes = 128, .tuning = {.fetch_bytes = 36}}, 50);
  const Seen seen = laboratory.run({.ops = 200});
  CHECK(seen.hits == 200);
  CHECK(of(seen.clients, PairType::kRc, Verb::kRead) == 400 + laboratory.trouble().vain);
}

TEST_CASE("rfp-hybrid: fetches, then asks a slow server for replies, and fetches again when it is fast") {
  InMemory laboratory("rfp-hybrid", {.servers = 1, .clients = 1, .tuning = {.hybrid_vain = 20}}, 50);
  Seen seen = laboratory.run({.ops = 300});
  CHECK(of(seen.clients, PairType::kRc, Verb::kRead) == 300 + laboratory.trouble().vain);
  CHECK(seen.servers.doorbells == 0);
  // The server looks once in 600 steps.
  uint32_t steps = 0;
  laboratory.on_step([&] { laboratory.stop_serving(++steps % 600 != 0); });
  seen = laboratory.run({.ops = 50});
  CHECK(seen.hits == 50);
  CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) >= 40);
  CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) <= 48);
  laboratory.on_step({});
  laboratory.stop_serving(false);
  seen = laboratory.run({.ops = 300});
  CHECK(seen.hits == 300);
  CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) < 20);
}

TEST_CASE("pilaf-vo and memc: a SEND each way, and a RECV for each") {
  for (const char* id : {"pilaf-vo", "memc"}) {
    InMemory laboratory(id, {.servers = 2, .clients = 3, .window = 4}, 100);
    laboratory.one(0, OpKind::kGet, 1);  // RECVs of the server's are posted before the first
    const Seen seen = laboratory.run(kMixed);
    CHECK(of(seen.clients, PairType::kRc, Verb::kSend) == 2000);
    CHECK(of(seen.clients, PairType::kRc, Verb::kReceive) == 2000);
    CHECK(of(seen.servers, PairType::kRc, Verb::kSend) == 2000);
    CHECK(of(seen.servers, PairType::kRc, Verb::kReceive) == 2000);
    CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) == 0);
  }
}

TEST_CASE("memc: the server WRITEs large values that are got, and READs those that are put") {
  InMemory laboratory("memc", {.servers = 2, .clients = 3, .window = 4, .value_bytes = 5000}, 100);
  const Seen seen = laboratory.run({.gets = 0.5, .ops = 1000});
  CHECK(seen.first_wrong == "");
  CHECK(seen.hits + seen.done == 1000);
  CHECK(of(seen.servers, PairType::kRc, Verb::kWrite) == seen.hits);
  CHECK(of(seen.servers, PairType::kRc, Verb::kRead) == seen.done);
  CHECK(of(seen.servers, PairType::kRc, Verb::kSend) == 1000);
  CHECK(of(seen.clients, PairType::kRc, Verb::kSend) == 1000);
  CHECK(seen.clients.payload_bytes == 1000 * (2 + 16 + 4 + 16));
}

TEST_CASE("memc: large values come whole, however transfers are torn") {
  for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
    InMemory laboratory("memc", {.servers = 2, .clients = 2, .window = 2, .value_bytes = 5000}, 20);
    laboratory.world().set_tearing({.read_piece = 256, .write_piece = 256, .order = order});
    const Seen seen = laboratory.run({.gets = 0.5, .erases = 0.1, .ops = 500});
    CHECK(seen.first_wrong == "");
    CHECK(seen.ops == 500);
  }
}

TEST_CASE("herd: a UC WRITE and a RECV of the client's, a UD SEND of the server's") {
  InMemory laboratory("herd", {.servers = 2, .clients = 3, .window = 4}, 100);
  const Seen seen = laboratory.run(kMixed);
  CHECK(of(seen.clients, PairType::kUc, Verb::kWrite) == 2000);
  CHECK(of(seen.clients, PairType::kUd, Verb::kReceive) == 2000);
  CHECK(of(seen.servers, PairType::kUd, Verb::kSend) == 2000);
  CHECK(seen.servers.doorbells == 2000);
  CHECK(seen.servers.receive_doorbells == 0);
}

TEST_CASE("herd: a core answers by as many UD pairs as are wanted") {
  const auto pairs = [](uint32_t ud_pairs) {
    InMemory laboratory("herd", {.servers = 2, .clients = 3, .tuning = {.ud_pairs = ud_pairs}}, 100);
    CHECK(laboratory.run(kMixed).first_wrong == "");
    return laboratory.world().pairs();
  };
  CHECK(pairs(4) == pairs(1) + 2 * 3);
}

TEST_CASE("herd: responses of one pass go by one doorbell, and none waits for others") {
  InMemory laboratory("herd", {.servers = 1, .clients = 8, .window = 4, .tuning = {.doorbell = 16}}, 100);
  // The server looks seldom, so that a pass finds several requests.
  uint32_t steps = 0;
  laboratory.on_step([&] { laboratory.stop_serving(++steps % 200 != 0); });
  Seen seen = laboratory.run(kMixed);
  CHECK(seen.first_wrong == "");
  CHECK(of(seen.servers, PairType::kUd, Verb::kSend) == 2000);
  CHECK(seen.servers.doorbells < 600);
  laboratory.on_step({});
  laboratory.stop_serving(false);
  CHECK(laboratory.one(0, OpKind::kGet, 3).outcome == Outcome::kHit);
}

TEST_CASE("herd: the options of paper 002 change what is posted and not what is answered") {
  const Tuning tunings[] = {{.ud_pairs = 4}, {.signal_every = 1},  {.is_inline = false}, {.is_header_only = true},
                            {.pad = 20},     {.prefetches = true}, {.as_paper = true},   {.is_synchronous = true}};
  for (const Tuning& tuning : tunings) {
    CAPTURE(&tuning - tunings);
    InMemory laboratory("herd", {.servers = 2, .clients = 3, .window = 4, .tuning = tuning}, 100);
    const Seen seen = laboratory.run({.gets = 0.5, .ops = 2000});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits + seen.done == 2000);
    const VerbCounts& posted = seen.servers;
    if (tuning.signal_every == 1 || tuning.is_synchronous) CHECK(posted.signalled == 2000);
    if (tuning.signal_every == 64 && !tuning.is_synchronous) CHECK(posted.signalled <= 2000 / 64);
    const uint64_t headers = tuning.is_header_only ? seen.done : 0;
    CHECK(posted.inlined == (tuning.is_inline ? 2000 - headers : 0));
    const uint64_t expected = seen.hits * 36 + (seen.done - headers) * 4 + uint64_t{tuning.pad} * 2000;
    CHECK(posted.payload_bytes == expected);
  }
}

TEST_CASE("herd: a value of 1,006 bytes fits into a slot") {
  InMemory laboratory("herd", {.value_bytes = 1006}, 30);
  CHECK(laboratory.run({.gets = 0.5, .ops = 300}).first_wrong == "");
}

TEST_CASE("herd: what is lost is written again; what was executed is not executed again") {
  for (const uint32_t window : {1u, 4u}) {
    for (const uint64_t seed : {1u, 2u, 3u}) {
      CAPTURE(window);
      CAPTURE(seed);
      InMemory laboratory("herd", {.servers = 2, .clients = 3, .window = window}, 100, seed);
      laboratory.world().set_loss(50);
      const Seen seen = laboratory.run(kMixed);
      CHECK(seen.first_wrong == "");
      CHECK(seen.ops == 2000);
      CHECK(laboratory.trouble().retries > 20);
      CHECK(seen.lost < 20);
      CHECK(seen.failed == 0);
    }
  }
}

TEST_CASE("seq-rpc: no number is given twice, whether by one or by several at once") {
  for (const uint32_t batch : {1u, 8u}) {
    InMemory laboratory("seq-rpc", {.servers = 2, .clients = 4, .window = 4, .tuning = {.batch_add = batch}}, 10);
    const Seen seen = laboratory.run({.ops = 2000, .next_only = true});
    CHECK(seen.first_wrong == "");
    CHECK(seen.hits == 2000);
    CHECK(seen.highest - seen.lowest == 1999);
    CHECK(of(seen.clients, PairType::kUc, Verb::kWrite) == 2000);
    CHECK(of(seen.servers, PairType::kUd, Verb::kSend) == 2000);
    CHECK(of(seen.clients, PairType::kUd, Verb::kReceive) == 2000);
  }
}

TEST_CASE("READs torn upwards do no harm to rfp; torn downwards they show old results (R)") {
  const Plan plan{.servers = 1, .clients = 2, .window = 2, .value_bytes = 256};
  for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown}) {
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      InMemory laboratory("rfp", plan, 20, seed);
      laboratory.world().set_tearing({.read_piece = 64, .order = order});
      const Seen seen = laboratory.run(kMixed);
      CHECK(seen.ops == 2000);
      wrong += seen.wrong + seen.failed;
    }
    CHECK((wrong == 0) == (order == TearOrder::kUp));
  }
}

TEST_CASE("WRITEs torn upwards or downwards do no harm to heads with tails; both ends first is taken for whole (W)") {
  const Plan plan{.servers = 1, .clients = 3, .window = 2, .value_bytes = 256};
  for (const char* id : {"reply", "nessie-sd", "rfp", "rfp-hybrid"}) {
    for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
      CAPTURE(id);
      CAPTURE(static_cast<int>(order));
      uint64_t wrong = 0;
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        InMemory laboratory(id, plan, 20, seed);
        laboratory.world().set_tearing({.write_piece = 64, .order = order});
        wrong += laboratory.run({.gets = 0.5, .ops = 2000, .steps = 1'000'000}).wrong;
      }
      CHECK((wrong == 0) == (order != TearOrder::kEnds));
    }
  }
}

TEST_CASE("herd's WRITE torn upwards does no harm: the key comes last; downwards and both ends first it does (W)") {
  const Plan plan{.servers = 1, .clients = 3, .window = 2, .value_bytes = 256};
  for (const TearOrder order : {TearOrder::kUp, TearOrder::kDown, TearOrder::kEnds}) {
    CAPTURE(static_cast<int>(order));
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      InMemory laboratory("herd", plan, 20, seed);
      laboratory.world().set_tearing({.write_piece = 64, .order = order});
      wrong += laboratory.run({.gets = 0.5, .ops = 2000, .steps = 1'000'000}).wrong;
    }
    CHECK((wrong == 0) == (order == TearOrder::kUp));
  }
}

TEST_CASE("a server that stands still answers nothing, and all of it when it goes on, where nothing is lost") {
  for (const char* id : {"reply", "rfp", "rfp-hybrid", "memc", "pilaf-vo", "nessie-sd"}) {
    CAPTURE(id);
    InMemory laboratory(id, {.servers = 1, .clients = 2, .window = 2}, 50);
    laboratory.stop_serving(true);
    CHECK(laboratory.run({.ops = 4, .steps = 20'000}).ops == 0);
    laboratory.stop_serving(false);
    CHECK(laboratory.run({.ops = 100}).first_wrong == "");
  }
}

TEST_CASE("a server that stands still for long: herd's calls are lost after two times 100 ms") {
  InMemory laboratory("herd", {.servers = 1, .clients = 2, .window = 2}, 50);
  laboratory.stop_serving(true);
  const Seen seen = laboratory.run({.ops = 4, .steps = 1'000'000});
  CHECK(seen.lost == 4);
  CHECK(laboratory.trouble().retries == 4);
}

TEST_CASE("a killed server: RC's calls fail, UC's and UD's are lost") {
  for (const char* id : kAll) {
    CAPTURE(id);
    InMemory laboratory(id, {.servers = 1, .clients = 1}, 50);
    CHECK(laboratory.run({.ops = 20}).hits == 20);
    laboratory.world().kill(0);
    laboratory.stop_serving(true);
    const bool may_lose = std::string_view(id) == "herd";
    const Seen seen = laboratory.run({.ops = 3, .steps = 2'000'000});
    CHECK(seen.lost == (may_lose ? 3 : 0));
    CHECK(seen.failed == (may_lose ? 0 : 3));
  }
}

TEST_CASE(
    "a server that is killed after it took a request: the client notices although it waits for nothing of its own") {
  for (const char* id : {"reply", "memc", "pilaf-vo"}) {
    CAPTURE(id);
    InMemory laboratory(id, {.servers = 1, .clients = 1}, 50);
    CHECK(laboratory.run({.ops = 20}).hits == 20);
    laboratory.stop_serving(true);
    uint32_t steps = 0;
    laboratory.on_step([&] {
      if (++steps == 500) laboratory.world().kill(0);
    });
    const Seen seen = laboratory.run({.ops = 1, .steps = 2'000'000});
    CHECK(seen.failed == 1);
  }
}
