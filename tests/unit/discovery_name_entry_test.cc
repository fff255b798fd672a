// Entries of `backends` that are names to be resolved.
#include <string>

#include <doctest/doctest.h>

#include "discovery/name_entry.h"

using namespace egret::discovery;

namespace {

std::string error_of(const std::string& text) {
  const auto parsed = parse_name_entry(text);
  return parsed ? "" : parsed.message();
}

}  // namespace

TEST_CASE("a name whose addresses are members") {
  const auto entry = parse_name_entry("dns+rdma:Pool.Example.:11311 weight=3");
  REQUIRE(entry);
  CHECK(entry.value().kind == NameKind::kAddresses);
  CHECK(entry.value().text == "dns+rdma:Pool.Example.:11311");
  CHECK(entry.value().host == "pool.example.");
  CHECK(entry.value().port == 11311);
  CHECK(entry.value().weight == 3);
}

TEST_CASE("a name whose services are members") {
  const auto entry = parse_name_entry("  srv+rdma:_egret._tcp.egret-backend ");
  REQUIRE(entry);
  CHECK(entry.value().kind == NameKind::kServices);
  CHECK(entry.value().text == "srv+rdma:_egret._tcp.egret-backend");
  CHECK(entry.value().host == "_egret._tcp.egret-backend");
  CHECK(entry.value().weight == 0);
}

TEST_CASE("members are reached by the transport that the entry names") {
  const auto by_rdma = parse_name_entry("dns+rdma:pool:11311");
  REQUIRE(by_rdma);
  CHECK(by_rdma.value().transport == "rdma");
  const auto by_tcp = parse_name_entry("dns+tcp:Pool:11311 weight=2");
  REQUIRE(by_tcp);
  CHECK(by_tcp.value().transport == "tcp");
  CHECK(by_tcp.value().kind == NameKind::kAddresses);
  CHECK(by_tcp.value().text == "dns+tcp:Pool:11311");
  CHECK(by_tcp.value().host == "pool");
  CHECK(by_tcp.value().port == 11311);
  const auto services_by_tcp = parse_name_entry("srv+tcp:_egret._tcp.pool");
  REQUIRE(services_by_tcp);
  CHECK(services_by_tcp.value().transport == "tcp");
  CHECK(services_by_tcp.value().kind == NameKind::kServices);
  CHECK(services_by_tcp.value().host == "_egret._tcp.pool");
  const auto by_both = parse_name_entry("dns+rdma+tcp:pool:11311");
  REQUIRE(by_both);
  CHECK(by_both.value().transport == "rdma+tcp");
  CHECK(by_both.value().kind == NameKind::kAddresses);
  const auto services_by_both = parse_name_entry("srv+rdma+tcp:_egret._tcp.pool");
  REQUIRE(services_by_both);
  CHECK(services_by_both.value().transport == "rdma+tcp");
  CHECK(services_by_both.value().host == "_egret._tcp.pool");
}

TEST_CASE("which entries are names") {
  CHECK(is_name_entry("dns+rdma:"));
  CHECK(is_name_entry("dns+tcp:x"));
  CHECK(!is_name_entry("tcp:host:1"));
  CHECK(is_name_entry("srv+rdma+tcp:x"));
  CHECK(!is_name_entry("dns+tcp+rdma:x"));
  CHECK(!is_name_entry("rdma+tcp:host:1"));
  CHECK(!is_name_entry("dns+tcp"));
  CHECK(!is_name_entry("dns+:x"));
  CHECK(!is_name_entry("srv+shm:x"));
  CHECK(!is_name_entry("srv+tcpx:x"));
  CHECK(is_name_entry(" srv+rdma:x"));
  CHECK(!is_name_entry("rdma:host:1"));
  CHECK(!is_name_entry("srv+rdma"));
  CHECK(!is_name_entry(""));
  CHECK(!is_name_entry("  "));
}

TEST_CASE("what is wrong with an entry is said") {
  CHECK(error_of("dns+rdma:pool") == "expected dns+rdma:NAME:PORT, got \"dns+rdma:pool\"");
  CHECK(error_of("dns+rdma:pool:0") == "expected dns+rdma:NAME:PORT, got \"dns+rdma:pool:0\"");
  CHECK(error_of("dns+rdma:pool:65536") == "expected dns+rdma:NAME:PORT, got \"dns+rdma:pool:65536\"");
  CHECK(error_of("dns+rdma:[::1]:11311") == "\"::1\" is no host name to look up, got \"dns+rdma:[::1]:11311\"");
  CHECK(error_of("dns+rdma:10.0.0.1:11311") ==
        "\"10.0.0.1\" is no host name to look up, got \"dns+rdma:10.0.0.1:11311\"");
  CHECK(error_of("srv+rdma:pool:11311") ==
        "expected srv+rdma:NAME, without a port: SRV records have theirs, got \"srv+rdma:pool:11311\"");
  CHECK(error_of("dns+tcp:pool") == "expected dns+tcp:NAME:PORT, got \"dns+tcp:pool\"");
  CHECK(error_of("srv+tcp:pool:11311") ==
        "expected srv+tcp:NAME, without a port: SRV records have theirs, got \"srv+tcp:pool:11311\"");
  CHECK(error_of("srv+rdma:") == "\"\" is no host name to look up, got \"srv+rdma:\"");
  CHECK(error_of("srv+rdma:pool name=x") ==
        "name= is for one backend, and a name to be resolved can have many, got \"srv+rdma:pool name=x\"");
  for (const char* const word : {"weight=0", "weight=1001", "weight=", "weight=1x", "more"}) {
    CHECK(error_of(std::string("srv+rdma:pool ") + word)
              .starts_with("expected weight=N with an N from 1 to 1000, or nothing, got"));
  }
  for (const char* const text : {"rdma:pool:11311", "srv+shm:pool", ""}) {
    CHECK(error_of(text).starts_with(
        "expected dns+rdma:NAME:PORT or srv+rdma:NAME, or tcp or rdma+tcp in the place of rdma, got"));
  }
}

TEST_CASE("host names") {
  CHECK(is_host_name("a"));
  CHECK(is_host_name("A-1._tcp.example."));
  CHECK(is_host_name(std::string(63, 'a') + ".b"));
  CHECK(is_host_name("1.2.3.4a"));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".a"), std::string("a..b"), std::string("a.."), std::string("a b"),
        std::string("a\n"), std::string("a\\046b"), std::string("\xc3\xa4"), std::string("1.2.3.4"), std::string("7"),
        std::string(64, 'a'), std::string("a\0b", 3)}) {
    CAPTURE(name);
    CHECK(!is_host_name(name));
  }
  std::string longest;
  while (longest.size() < 253) longest += "a.";
  longest.resize(253, 'a');
  CHECK(is_host_name(longest));
  CHECK(!is_host_name("a" + longest));
}
