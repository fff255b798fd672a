// A list of members as text: which lines are members, and what is refused, by file and line.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "discovery/members_text.h"
#include "discovery_harness.h"

using namespace egret;
using discovery::members_text;
using discovery::parse_members;

namespace {

Texts parsed(const std::string& text) {
  auto members = parse_members(text, "list");
  REQUIRE_MESSAGE(members.is_ok(), members.message());
  return texts(members.value());
}

std::string error_of(const std::string& text) {
  auto members = parse_members(text, "list");
  return members ? "" : members.message();
}

std::string many(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += "rdma:10.0.0.1:" + std::to_string(1 + i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a line is a member, as in the option `backends`") {
  CHECK(parsed("rdma:10.0.0.1:1\nrdma:10.0.0.2:1 weight=3 name=two\nshm:/run/x.sock\n") ==
        Texts{"rdma:10.0.0.1:1", "two=rdma:10.0.0.2:1*3", "shm:/run/x.sock"});
}

TEST_CASE("the last line needs no newline, and lines may end as in DOS") {
  CHECK(parsed("rdma:10.0.0.1:1\r\nrdma:10.0.0.2:1") == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.2:1"});
}

TEST_CASE("blank lines, tabs and comments do not count") {
  CHECK(parsed("# all\n\n  \t \n\t# of rack 1\nrdma:10.0.0.1:1\tweight=2   # the new one\n #\n") ==
        Texts{"rdma:10.0.0.1:1*2"});
}

TEST_CASE("a # within a word is part of it") {
  CHECK(parsed("rdma:10.0.0.1:1 name=rack#1 #2\n") == Texts{"rack#1=rdma:10.0.0.1:1"});
}

TEST_CASE("an error names the file and the line") {
  CHECK(error_of("# all\n\nrdma:10.0.0.1:1 heavy\n") ==
        "list:3: expected ADDRESS [weight=N] [name=NAME], got \"rdma:10.0.0.1:1 heavy\"");
  CHECK(error_of("shm:/run/a:*:b").empty());
  for (const char* address : {"rdma:*:1", "tcp:*:1", "rdma+tcp:*:1 name=a"}) {
    CHECK(error_of(address).starts_with("list:1: '*' is every address of the host that listens"));
  }
  CHECK(error_of("rdma:10.0.0.1:1 weight=0").starts_with("list:1: expected weight=N "));
  CHECK(error_of("rdma:10.0.0.1:1\nnowhere\n").starts_with("list:2: "));
  CHECK(error_of("rdma:10.0.0.1:1 name=a\x01z\n") == R"(list:1: control characters in "rdma:10.0.0.1:1 name=a\x01z")");
  CHECK(error_of(std::string("rdma:10.0.0.1:1\n\0\n", 18)).starts_with("list:2: control characters"));
}

TEST_CASE("a line that is too long to be a member is refused without being repeated") {
  CHECK(error_of("rdma:10.0.0.1:1\nrdma:" + std::string(2000, 'a') + ":1") == "list:2: longer than 1000 bytes");
  CHECK(error_of("rdma:10.0.0.1:1 # " + std::string(2000, 'a')).empty());
  CHECK(error_of("rdma:" + std::string(300, 'a') + ":1")
            .starts_with("list:1: an address of more than 255 bytes needs name=NAME"));
  CHECK(error_of("rdma:" + std::string(300, 'a') + ":1 name=a").empty());
}

TEST_CASE("of two members with one name the second is refused, by both lines") {
  CHECK(error_of("rdma:10.0.0.1:1 name=a\nrdma:10.0.0.2:1\nrdma:10.0.0.3:1 name=a\n")
            .starts_with("list:3: the name \"a\" is that of line 1, too"));
}

TEST_CASE("a pool has at least one member and at most 1,024") {
  CHECK(error_of("# none yet\n") == "list: a pool needs at least one backend");
  CHECK(error_of(many(1024)).empty());
  CHECK(error_of(many(1025)) == "list:1025: a pool has at most 1024 backends");
}

TEST_CASE("members are written as text that reads as the same members") {
  const std::string text = "rdma:10.0.0.1:1\nrdma:[::1]:2 weight=1000 name=rack#1\nshm:/run/x.sock name=#\nshm:[\n";
  const auto members = parse_members(text, "list").value();
  const std::string written = members_text("made by\na test", members);
  CHECK(parse_members(written, "copy").value() == members);
  CHECK(written.starts_with("# made by\\na test\n"));
}
