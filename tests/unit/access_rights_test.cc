// What a peer may do: by the first entry of the option `rights` that names it, or by what holds without one.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "access/rights.h"

using namespace egret::access;
namespace op = egret::op;

namespace {

constexpr uint32_t kOwn = 500;
const Peer kRoot{.has_user = true, .uid = 0, .gids = {0}};
const Peer kSelf{.has_user = true, .uid = kOwn, .gids = {kOwn}};
const Peer kOther{.has_user = true, .uid = 33, .gids = {33, 100}};
const Peer kOtherWithSecret{.has_user = true, .uid = 33, .gids = {33, 100}, .secret = "main"};
const Peer kFar{};
const Peer kFarWithSecret{.secret = "next"};

std::string rights(const std::vector<std::string>& entries, const Peer& peer) {
  auto table = RightsTable::parse(entries);
  REQUIRE_MESSAGE(table.is_ok(), table.message());
  return op::to_string(table.value().of(peer, kOwn));
}

}  // namespace

TEST_CASE("without entries all but other users of this host may do everything; those may read and write") {
  for (const Peer& peer : {kRoot, kSelf, kOtherWithSecret, kFar, kFarWithSecret}) CHECK(rights({}, peer) == "all");
  CHECK(rights({}, kOther) == "read+write");
}

TEST_CASE("the first entry that names the peer decides") {
  CHECK(rights({"uid=33:read"}, kOther) == "read");
  CHECK(rights({"uid=34:read"}, kOther) == "read+write");
  CHECK(rights({"gid=100:dump+read"}, kOther) == "read+dump");
  CHECK(rights({"gid=101:dump", "other: none"}, kOther) == "none");
  CHECK(rights({"uid=33:flush", "uid=33:all"}, kOther) == "flush");
  CHECK(rights({"secret=main:limits", "uid=33:all"}, kOtherWithSecret) == "limits");
  CHECK(rights({"secret=main:limits", "uid=33:all"}, kOther) == "all");
  CHECK(rights({"secret=next:read+write"}, kFarWithSecret) == "read+write");
  CHECK(rights({"other:read"}, kRoot) == "read");
}

TEST_CASE("ids of users are nothing to peers that have none") {
  CHECK(rights({"uid=0:read", "gid=0:read", "secret=main:read"}, kFar) == "all");
}

TEST_CASE("what is no entry is refused with the form of one") {
  for (const char* bad :
       {"", "uid=33", "uid=33:", "uid=:read", "uid=x:read", "uid=-1:read", "user=33:read", ":read", "uid=33:read+",
        "uid=33:+read", "uid=33:Read", "secret=:read", "other=1:read", "uid:read", "uid=33:read write"}) {
    CAPTURE(bad);
    const auto table = RightsTable::parse({bad});
    REQUIRE_FALSE(table.is_ok());
    CHECK(table.message().find("expected entries like uid=33:read+write") != std::string::npos);
  }
}

TEST_CASE("rights are written as they are read") {
  for (op::Rights each = 0; each <= op::kAllRights; ++each) {
    op::Rights read = ~each;
    REQUIRE(op::parse_rights(op::to_string(each), read));
    CHECK(read == each);
  }
}
