// A name service as a source of members: what it answers becomes the members, and what it does not answer changes none.
#include <chrono>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "discovery/name_service.h"
#include "discovery_harness.h"
#include "discovery_name_server.h"

using namespace egret;
using namespace std::chrono_literals;
using discovery::NameService;
using discovery::NameServiceOptions;
using dns::a;
using dns::aaaa;
using dns::kA;
using dns::kAaaa;
using dns::kSrv;
using dns::Outcome;
using dns::srv;

namespace {

// A name server and one entry that is resolved by it, again after a few milliseconds.
struct Bench {
  events::EventLoop loop;
  Patience patience{loop};
  dns::NameServer server{loop};
  CountingObserver observer;
  NameServiceOptions options;
  std::unique_ptr<NameService> service;

  Bench() {
    options.resolver.servers = server.address();
    options.resolver.timeout = 20ms;
    options.resolver.tries = 2;
    options.least = 2ms;
    options.most = 4ms;
  }

  void start(const std::string& entry) {
    auto parsed = discovery::parse_name_entry(entry);
    REQUIRE(parsed);
    service = std::make_unique<NameService>(loop, parsed.value(), options, observer);
    service->start();
    CHECK(observer.members + observer.problems == 0);
  }
  // The first round of it, whatever it brings.
  void settle(const std::string& entry) {
    start(entry);
    patience.until([&] { return observer.members + observer.problems > 0; });
  }
  void expect(const Texts& members) {
    patience.until([&] { return texts(service->members()) == members; });
  }
  void expect_problem(const std::string& start_of_it) {
    patience.until(
        [&] { return start_of_it.empty() ? service->problem().empty() : service->problem().starts_with(start_of_it); });
  }
  // Lets a round begin and end.
  void another_round(const std::string& name, uint16_t type) {
    const size_t before = server.asked(name, type);
    patience.until([&] { return server.asked(name, type) >= before + 2; });
  }
};

constexpr const char* kPool = "pool.example";
constexpr const char* kAddresses = "dns+rdma:pool.example.:11311";
constexpr const char* kServices = "srv+rdma:pool.example.";

}  // namespace

TEST_CASE("the addresses of a name are members, in the order of their names") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.2"), a("10.0.0.1"), a("10.0.0.2")});
  bench.server.set(kPool, kAaaa, {aaaa("2001:db8::1")});
  bench.start("dns+rdma:pool.example.:11311 weight=3");
  bench.expect({"rdma:10.0.0.1:11311*3", "rdma:10.0.0.2:11311*3", "rdma:[2001:db8::1]:11311*3"});
  CHECK(bench.observer.members == 1);
  CHECK(bench.observer.problems == 0);
  CHECK(bench.service->name() == kAddresses);
}

TEST_CASE("members of a name that is resolved for tcp are reached by tcp, and have the names that they had over rdma") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.server.set(kPool, kAaaa, {aaaa("2001:db8::1")});
  bench.settle("dns+tcp:pool.example.:11311");
  CHECK(texts(bench.service->members()) == Texts{"tcp:10.0.0.1:11311", "tcp:[2001:db8::1]:11311"});
  const std::vector<pool::Member> over_tcp(bench.service->members().begin(), bench.service->members().end());

  // Each family of addresses stays by itself, as over rdma.
  bench.server.set(kPool, kA, {a("10.0.0.2")});
  bench.server.behave(kPool, kAaaa, Outcome::kServerFails);
  bench.expect_problem("name servers fail, refuse, or cannot be reached (since ");
  CHECK(texts(bench.service->members()) == Texts{"tcp:10.0.0.2:11311", "tcp:[2001:db8::1]:11311"});

  Bench other;
  other.server.set(kPool, kA, {a("10.0.0.1")});
  other.server.set(kPool, kAaaa, {aaaa("2001:db8::1")});
  other.settle(kAddresses);
  const auto over_rdma = other.service->members();
  REQUIRE(over_rdma.size() == over_tcp.size());
  for (size_t at = 0; at < over_tcp.size(); ++at) CHECK(over_tcp[at].name == over_rdma[at].name);
}

TEST_CASE("targets of SRV records for tcp are reached by tcp: by their addresses, else by their names") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1), srv("b.example", 2), srv("c.example", 3)},
                   {a("10.0.0.1", 60, "a.example")});
  bench.server.set("b.example", kAaaa, {aaaa("2001:db8::b")});
  bench.settle("srv+tcp:pool.example.");
  CHECK(texts(bench.service->members()) ==
        Texts{"a.example:1=tcp:10.0.0.1:1", "b.example:2=tcp:[2001:db8::b]:2", "tcp:c.example:3"});
}

TEST_CASE("a change of the answer is a change of the members, and the same answer is none") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.start(kAddresses);
  bench.expect({"rdma:10.0.0.1:11311"});
  bench.another_round(kPool, kA);
  CHECK(bench.observer.members == 1);
  bench.server.set(kPool, kA, {a("10.0.0.3"), a("10.0.0.1")});
  bench.expect({"rdma:10.0.0.1:11311", "rdma:10.0.0.3:11311"});
  bench.server.set(kPool, kA, {a("10.0.0.3")});
  bench.expect({"rdma:10.0.0.3:11311"});
  CHECK(bench.observer.members == 3);
  CHECK(bench.service->problem().empty());
}

TEST_CASE("what failed leaves the members as they were, and says why and since when") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.settle(kAddresses);
  std::string why;
  SUBCASE("there is no such name") {
    bench.server.forget(kPool);
    why = "there is no such name (since ";
  }
  SUBCASE("an empty answer") {
    bench.server.set(kPool, kA, {});
    why = "the name has no such records (since ";
  }
  SUBCASE("the server fails") {
    bench.server.behave(kPool, kA, Outcome::kServerFails);
    why = "name servers fail, refuse, or cannot be reached (since ";
  }
  SUBCASE("the server is silent") {
    bench.server.behave(kPool, kA, Outcome::kSilence);
    why = "no name server answers in time (since ";
  }
  bench.expect_problem(why);
  CHECK(bench.service->problem().ends_with("; what was known before is kept, 1 member in all)"));
  CHECK(texts(bench.service->members()) == Texts{"rdma:10.0.0.1:11311"});
  const std::string first = bench.service->problem();
  bench.another_round(kPool, kA);
  CHECK(bench.service->problem() == first);  // since the same time
  CHECK(bench.observer.problems == 1);

  bench.server.set(kPool, kA, {a("10.0.0.2")});
  bench.expect({"rdma:10.0.0.2:11311"});
  CHECK(bench.service->problem().empty());
  CHECK(bench.observer.problems == 2);
}

TEST_CASE("a garbled answer is none") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.settle(kAddresses);
  bench.server.behave(kPool, kA, Outcome::kGarbage);
  bench.patience.until([&] { return !bench.service->problem().empty(); });
  CHECK(texts(bench.service->members()) == Texts{"rdma:10.0.0.1:11311"});
}

TEST_CASE("a name that cannot be resolved at first has no members, and gets them later") {
  Bench bench;
  bench.settle(kAddresses);
  CHECK(bench.service->members().empty());
  CHECK(bench.service->problem().starts_with("there is no such name (since "));
  CHECK(bench.service->problem().ends_with("; there are no members yet)"));
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.expect({"rdma:10.0.0.1:11311"});
}

TEST_CASE("if only one family of addresses could be learned, the other's are kept") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.server.set(kPool, kAaaa, {aaaa("2001:db8::1")});
  bench.settle(kAddresses);
  bench.server.set(kPool, kA, {a("10.0.0.2")});
  bench.server.behave(kPool, kAaaa, Outcome::kServerFails);
  bench.expect_problem("name servers fail, refuse, or cannot be reached (since ");
  CHECK(texts(bench.service->members()) == Texts{"rdma:10.0.0.2:11311", "rdma:[2001:db8::1]:11311"});
  bench.server.set(kPool, kAaaa, {});
  bench.expect({"rdma:10.0.0.2:11311"});
  CHECK(bench.service->problem().empty());
}

TEST_CASE("the targets of SRV records are members by name, with the addresses that came along") {
  Bench bench;
  bench.server.set(kPool, kSrv,
                   {srv("B.pool.example", 11312), srv("a.pool.example", 11311), srv("a.pool.example", 11311)},
                   {a("10.0.0.1", 60, "A.POOL.example"), a("10.0.0.2", 60, "b.pool.example"),
                    a("10.6.6.6", 60, "stranger.example")});
  bench.start(kServices);
  bench.expect({"a.pool.example:11311=rdma:10.0.0.1:11311", "b.pool.example:11312=rdma:10.0.0.2:11312"});
  CHECK(bench.server.asked("a.pool.example", kA) == 0);
  CHECK(bench.service->problem().empty());
}

TEST_CASE("addresses of targets that did not come along are asked for: IPv4, then IPv6") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1), srv("b.example", 2), srv("c.example", 3)},
                   {aaaa("2001:db8::a", 60, "a.example")});
  bench.server.set("a.example", kA, {a("10.0.0.9"), a("10.0.0.1")});
  bench.server.set("b.example", kAaaa, {aaaa("2001:db8::b")});
  bench.server.set("c.example", kA,
                   {{"", dns::kCname, 60, dns::wire_name("real.example")}, a("10.0.0.3", 60, "real.example")});
  bench.start(kServices);
  bench.expect({"a.example:1=rdma:10.0.0.1:1", "b.example:2=rdma:[2001:db8::b]:2", "c.example:3=rdma:10.0.0.3:3"});
  CHECK(bench.service->problem().empty());
}

TEST_CASE("a target keeps its address while that is one of its addresses, and its name when it gets another") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1)});
  bench.server.set("a.example", kA, {a("10.0.0.5")});
  bench.settle(kServices);
  bench.server.set("a.example", kA, {a("10.0.0.5"), a("10.0.0.1")});
  bench.another_round("a.example", kA);
  CHECK(texts(bench.service->members()) == Texts{"a.example:1=rdma:10.0.0.5:1"});
  bench.server.set("a.example", kA, {a("10.0.0.1")});
  bench.expect({"a.example:1=rdma:10.0.0.1:1"});
  CHECK(bench.observer.members == 2);
}

TEST_CASE("a target that is resolved no more keeps its address, and one that never was has its name for it") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1)});
  bench.server.set("a.example", kA, {a("10.0.0.1")});
  bench.settle(kServices);
  bench.server.forget("a.example");
  bench.server.set(kPool, kSrv, {srv("a.example", 1), srv("b.example", 1)});
  bench.expect({"a.example:1=rdma:10.0.0.1:1", "rdma:b.example:1"});
  CHECK(bench.service->problem().starts_with(
      "2 of 2 targets could not be resolved, a.example: there is no such name (since "));
  bench.server.set("b.example", kA, {a("10.0.0.2")});
  bench.expect({"a.example:1=rdma:10.0.0.1:1", "b.example:1=rdma:10.0.0.2:1"});
  CHECK(bench.service->problem().starts_with("1 of 2 targets could not be resolved, a.example: "));
}

TEST_CASE("a target whose zone is broken keeps none of the others from being resolved") {
  Bench bench;
  std::vector<dns::Record> records{srv("a.broken", 1)};
  Texts expected{"rdma:a.broken:1"};
  for (int i = 100; i < 250; ++i) {
    const std::string host = "h" + std::to_string(i) + ".example";
    records.push_back(srv(host, 1));
    bench.server.set(host, kA, {a("10.0.0." + std::to_string(i))});
    expected.all.push_back(host + ":1=rdma:10.0.0." + std::to_string(i) + ":1");
  }
  bench.server.set(kPool, kSrv, records);
  bench.server.behave("a.broken", kA, Outcome::kServerFails);
  bench.settle(kServices);
  CHECK(texts(bench.service->members()) == expected);
  CHECK(bench.service->problem().starts_with("1 of 151 targets could not be resolved, a.broken: name servers fail"));
}

TEST_CASE("when servers answer no more in the middle of a round, not every target is waited for") {
  Bench bench;
  std::vector<dns::Record> records;
  for (int i = 100; i < 300; ++i) {
    const std::string host = "h" + std::to_string(i) + ".example";
    records.push_back(srv(host, 1));
    bench.server.set(host, kA, {a("10.0.0.1")});
    bench.server.behave(host, kA, Outcome::kSilence);
  }
  bench.server.set(kPool, kSrv, records);
  bench.settle(kServices);
  CHECK(bench.service->members().size() == 200);
  CHECK(bench.service->problem().starts_with("200 of 200 targets could not be resolved, "));
  CHECK(bench.server.asked("h100.example", kA) > 0);
  CHECK(bench.server.asked("h299.example", kA) == 0);
}

TEST_CASE("an SRV answer that is empty or fails leaves the members as they were") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1)}, {a("10.0.0.1", 60, "a.example")});
  bench.settle(kServices);
  SUBCASE("empty") {
    bench.server.set(kPool, kSrv, {});
  }
  SUBCASE("no such name") {
    bench.server.forget(kPool);
  }
  SUBCASE("no service") {
    bench.server.set(kPool, kSrv, {srv("", 0)});
  }
  SUBCASE("no usable record") {
    bench.server.set(kPool, kSrv, {srv("a b", 1)});
  }
  SUBCASE("silence") {
    bench.server.behave(kPool, kSrv, Outcome::kSilence);
  }
  bench.patience.until([&] { return !bench.service->problem().empty(); });
  CHECK(texts(bench.service->members()) == Texts{"a.example:1=rdma:10.0.0.1:1"});
  CHECK(bench.observer.members == 1);
}

TEST_CASE("SRV weights count if they differ, within 1 to 1000, and if the entry has none") {
  Bench bench;
  const auto records = [](uint16_t first, uint16_t second) {
    return std::vector<dns::Record>{srv("a.example", 1, first), srv("b.example", 1, second)};
  };
  const std::vector<dns::Record> addresses{a("10.0.0.1", 60, "a.example"), a("10.0.0.2", 60, "b.example")};
  const auto first_round = [&](const std::vector<dns::Record>& services, const std::string& entry) {
    bench.server.set(kPool, kSrv, services, addresses);
    bench.settle(entry);
    return texts(bench.service->members());
  };
  const std::string one = "a.example:1=rdma:10.0.0.1:1";
  const std::string two = "b.example:1=rdma:10.0.0.2:1";
  SUBCASE("equal") {
    CHECK(first_round(records(50, 50), kServices) == Texts{one, two});
  }
  SUBCASE("other") {
    CHECK(first_round(records(2, 3), kServices) == Texts{one + "*2", two + "*3"});
  }
  SUBCASE("beyond") {
    CHECK(first_round(records(0, 65535), kServices) == Texts{one, two + "*1000"});
  }
  SUBCASE("given") {
    CHECK(first_round(records(2, 3), std::string(kServices) + " weight=7") == Texts{one + "*7", two + "*7"});
  }
}

TEST_CASE("of SRV records those of the lowest priority are members") {
  Bench bench;
  bench.server.set(kPool, kSrv, {srv("a.example", 1, 9, 20), srv("b.example", 1, 5, 10), srv("c.example", 1, 5, 10)},
                   {a("10.0.0.1", 60, "a.example"), a("10.0.0.2", 60, "b.example"), a("10.0.0.3", 60, "c.example")});
  bench.settle(kServices);
  CHECK(texts(bench.service->members()) == Texts{"b.example:1=rdma:10.0.0.2:1", "c.example:1=rdma:10.0.0.3:1"});
}

TEST_CASE("a thousand SRV records come over TCP, and the order of the records does not matter") {
  Bench bench;
  std::vector<dns::Record> records;
  for (int i = 1000; i < 2000; ++i) {
    const std::string host = "egret-" + std::to_string(i) + ".pool.example";
    records.push_back(srv(host, 11311));
    bench.server.set(host, kA, {a("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250))});
  }
  std::swap(records.front(), records.back());
  bench.server.set(kPool, kSrv, records);
  // On a slow machine some of the thousand answers come too late for a first round.
  bench.start(kServices);
  bench.patience.until([&] { return bench.service->members().size() == 1000; });
  CHECK(bench.service->problem().empty());
  CHECK(texts(bench.service->members()).all.front() == "egret-1000.pool.example:11311=rdma:10.0.4.0:11311");
  CHECK(texts(bench.service->members()).all.back() == "egret-1999.pool.example:11311=rdma:10.0.7.249:11311");
  CHECK(bench.server.tcp_questions() >= 1);
}

TEST_CASE("an answer with more members than a pool can have is refused, and the last good one stays") {
  Bench bench;
  std::vector<dns::Record> addresses;
  std::vector<dns::Record> services;
  for (int i = 0; i < 1030; ++i) {
    addresses.push_back(a("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    services.push_back(srv("h" + std::to_string(i) + ".example", 1));
  }
  std::string entry;
  SUBCASE("addresses") {
    entry = kAddresses;
  }
  SUBCASE("services") {
    entry = kServices;
  }
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.server.set(kPool, kSrv, {srv("a.example", 1)}, {a("10.0.0.1", 60, "a.example")});
  bench.settle(entry);
  CHECK(bench.service->learned_at());
  const Texts before = texts(bench.service->members());
  bench.server.set(kPool, kA, addresses);
  bench.server.set(kPool, kSrv, services);
  bench.expect_problem("the answer is refused: it has 1030 members, and a pool has at most 1024 (since ");
  CHECK(texts(bench.service->members()) == before);
  CHECK(bench.server.asked("h0.example", kA) == 0);
  CHECK(bench.observer.members == 1);
}

TEST_CASE("an answer that is truncated over TCP, too, removes nobody") {
  Bench bench;
  std::vector<dns::Record> records;
  for (int i = 100; i < 200; ++i) records.push_back(a("10.0.0." + std::to_string(i)));
  bench.server.set(kPool, kA, records);
  bench.settle(kAddresses);
  CHECK(bench.service->members().size() == 100);
  records.erase(records.begin(), records.begin() + 10);
  records.push_back(a("10.0.0.1"));
  bench.server.set(kPool, kA, records);
  bench.server.behave(kPool, kA, Outcome::kTruncated);
  bench.expect_problem("the answer does not fit a DNS message (since ");
  CHECK(bench.service->members().size() == 101);
}

TEST_CASE("records that cannot be used are left out, and counted in the problem") {
  Bench bench;
  bench.server.set(kPool, kSrv,
                   {srv("a.example", 1), srv("b b.example", 1),
                    srv(std::string(60, 'x') + "." + std::string(60, 'x') + "." + std::string(60, 'x') + "." +
                            std::string(66 - 5, 'x') + ".example",
                        65535)},
                   {a("10.0.0.1", 60, "a.example")});
  bench.settle(kServices);
  CHECK(texts(bench.service->members()) == Texts{"a.example:1=rdma:10.0.0.1:1"});
  CHECK(bench.service->problem() == "2 records cannot be used");
}

TEST_CASE("a name without a dot at its end is looked for as it is, too") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.settle("dns+rdma:pool.example:11311");
  CHECK(texts(bench.service->members()) == Texts{"rdma:10.0.0.1:11311"});
}

TEST_CASE("a source can be destroyed while its questions are open") {
  Bench bench;
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.server.behave(kPool, kA, Outcome::kSilence);
  bench.start(kAddresses);
  bench.patience.until([&] { return bench.server.asked(kPool, kA) > 0; });
  bench.service.reset();
  bench.loop.run_once(false);
  CHECK(bench.observer.members + bench.observer.problems == 0);
}

TEST_CASE("name servers that cannot be: a problem, no crash") {
  Bench bench;
  bench.options.resolver.servers = "nonsense";
  bench.settle(kAddresses);
  CHECK(bench.service->problem().starts_with("cannot ask the name servers nonsense: "));
}

TEST_CASE("of several name servers the second is asked if the first fails") {
  Bench bench;
  dns::NameServer first(bench.loop);
  first.set(kPool, kA, {});
  first.behave(kPool, kA, Outcome::kServerFails);
  first.behave(kPool, kAaaa, Outcome::kServerFails);
  bench.options.resolver.servers = first.address() + ", " + bench.server.address();
  bench.server.set(kPool, kA, {a("10.0.0.1")});
  bench.start(kAddresses);
  bench.expect({"rdma:10.0.0.1:11311"});
  CHECK(first.asked(kPool, kA) > 0);
}

TEST_CASE("lists of name servers") {
  CHECK(discovery::check_servers(""));
  CHECK(discovery::check_servers("10.0.0.10, 10.0.0.11:5353, ::1, [::1]:53"));
  for (const char* const wrong : {"name", "10.0.0", "10.0.0.1:0", "10.0.0.1:x", "[::1", "10.0.0.1 10.0.0.2", ","}) {
    CAPTURE(wrong);
    CHECK(!discovery::check_servers(wrong));
  }
}
