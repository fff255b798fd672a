// The records of a DNS message: what is usable is taken, what is not is counted, and no bytes do harm.
#include <string>

#include <doctest/doctest.h>

#include "discovery/dns_answer.h"
#include "discovery_name_server.h"

using namespace egret;
using discovery::AddressRecord;
using discovery::DnsAnswer;
using discovery::ServiceRecord;

namespace {

std::string message(const dns::Answer& answer, const std::string& name = "pool.example") {
  return dns::message_of("id", dns::wire_name(name) + dns::u16(dns::kSrv) + dns::u16(1), answer, 0, false);
}

base::Expected<DnsAnswer> parse(const std::string& bytes) {
  return discovery::parse_dns_answer({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

DnsAnswer parsed(const dns::Answer& answer) {
  auto outcome = parse(message(answer));
  REQUIRE(outcome);
  return outcome.value();
}

}  // namespace

TEST_CASE("addresses and services, with the least TTL of them") {
  const DnsAnswer answer =
      parsed({{dns::srv("b.pool.example", 11311, 10, 1, 30), dns::srv("A.Pool.Example", 2, 0, 0, 20)},
              {dns::a("10.0.0.1", 25, "a.pool.example"), dns::aaaa("2001:db8::1", 40, "B.pool.example")}});
  CHECK(answer.services == std::vector<ServiceRecord>{{"b.pool.example", 11311, 1, 10}, {"a.pool.example", 2, 0, 0}});
  CHECK(answer.addresses.empty());
  CHECK(answer.additional ==
        std::vector<AddressRecord>{{"a.pool.example", "10.0.0.1", false}, {"b.pool.example", "2001:db8::1", true}});
  CHECK(answer.ttl == 20);
  CHECK(answer.unusable == 0);
  CHECK(!answer.is_truncated);
}

TEST_CASE("addresses behind a CNAME, whose TTL counts") {
  const DnsAnswer answer =
      parsed({{{"", dns::kCname, 7, dns::wire_name("real.example")}, dns::a("10.0.0.1", 60, "real.example")}, {}});
  CHECK(answer.addresses == std::vector<AddressRecord>{{"real.example", "10.0.0.1", false}});
  CHECK(answer.ttl == 7);
}

TEST_CASE("a TTL with the highest bit set is 0") {
  CHECK(parsed({{dns::a("10.0.0.1", 0x80000000U)}, {}}).ttl == 0);
}

TEST_CASE("a target that is the root says that there is no service") {
  const DnsAnswer answer = parsed({{dns::srv("", 1)}, {}});
  CHECK(answer.services.empty());
  CHECK(answer.unusable == 0);
}

TEST_CASE("records that cannot be used are counted and left out") {
  const auto unusable = [](const dns::Record& record) {
    const DnsAnswer answer = parsed({{record, dns::srv("good.example", 1)}, {}});
    CHECK(answer.services == std::vector<ServiceRecord>{{"good.example", 1, 0, 0}});
    CHECK(answer.addresses.empty());
    return answer.unusable;
  };
  CHECK(unusable(dns::srv("bad name.example", 1)) == 1);
  CHECK(unusable(dns::srv("bad\nname.example", 1)) == 1);
  CHECK(unusable(dns::srv("b\x01"
                          "d.example",
                          1)) == 1);  // a dot within a label
  CHECK(unusable(dns::srv("\xff.example", 1)) == 1);
  CHECK(unusable(dns::srv("10.0.0.1", 1)) == 1);
  CHECK(unusable(dns::srv("portless.example", 0)) == 1);
  CHECK(unusable({"", dns::kSrv, 1, dns::u16(0) + dns::u16(0) + dns::u16(1)}) == 1);  // no target
  CHECK(unusable({"", dns::kSrv, 1, dns::u16(0) + dns::u16(0) + dns::u16(1) + dns::wire_name("a.b") + "more"}) == 1);
  CHECK(unusable({"", dns::kSrv, 1, dns::u16(0) + dns::u16(0) + dns::u16(1) + dns::u16(0xffff)}) ==
        1);  // beyond the message
  CHECK(unusable({"", dns::kA, 1, "12345"}) == 1);
  CHECK(unusable({"", dns::kAaaa, 1, "1234"}) == 1);
}

TEST_CASE("compression that leads in a circle is unusable") {
  // The question takes 12 + 14 + 4 bytes; the record's target begins 12 + 6 bytes behind and points to itself.
  const std::string target = dns::u16(0xc000U + 12 + 14 + 4 + 12 + 6);
  const DnsAnswer answer = parsed({{{"", dns::kSrv, 1, dns::u16(0) + dns::u16(0) + dns::u16(1) + target}}, {}});
  CHECK(answer.services.empty());
  CHECK(answer.unusable == 1);
}

TEST_CASE("a message that is cut anywhere is an error") {
  const std::string whole = message({{dns::srv("b.pool.example", 11311)}, {dns::a("10.0.0.1", 25, "b.pool.example")}});
  REQUIRE(parse(whole));
  for (size_t size = 0; size < whole.size(); ++size) CHECK(!parse(whole.substr(0, size)));
  CHECK(!parse(whole + "x"));
  CHECK(!parse(std::string(70000, '\0')));
}
