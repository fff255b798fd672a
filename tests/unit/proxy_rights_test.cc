// What each command needs, and who may use which key.
#include <string>

#include <doctest/doctest.h>

#include "memcache/client_parser.h"
#include "proxy/users/rights.h"

namespace {

using namespace egret::proxy;
using namespace egret::memcache;

// Of the first event of the line.
uint8_t needed(const std::string& line) {
  ClientParser parser{Limits{}};
  Command command;
  const std::string input = line + "\r\n";
  const Step step = parser.next(input, command);
  REQUIRE((step.event == Event::kKey || step.event == Event::kCommand || step.event == Event::kValueBegin));
  return rights_needed(command);
}

bool may_use(const User& user, const std::string& line) {
  ClientParser parser{Limits{}};
  Command command;
  const std::string input = line + "\r\n";
  parser.next(input, command);
  return permits(user, command);
}

}  // namespace

TEST_CASE("every command has its right") {
  for (const char* line : {"get k", "gets k l", "mg k", "mg k v t f h l", "mg k k q O1", "me k"}) {
    CAPTURE(line);
    CHECK(needed(line) == kMayRead);
  }
  for (const char* line :
       {"set k 0 0 1\r\nx", "add k 0 0 1\r\nx", "replace k 0 0 1\r\nx", "append k 0 0 1\r\nx", "prepend k 0 0 1\r\nx",
        "cas k 0 0 1 1\r\nx", "ms k 1\r\nx", "md k", "md k I T9", "delete k", "touch k 9"}) {
    CAPTURE(line);
    CHECK(needed(line) == kMayWrite);
  }
  for (const char* line : {"gat 9 k", "gats 9 k", "mg k T9", "mg k N9", "mg k R9", "mg k v N9 E5", "incr k 1",
                           "decr k 1", "ma k", "ma k N0 v"}) {
    CAPTURE(line);
    CHECK(needed(line) == (kMayRead | kMayWrite));
  }
  for (const char* line :
       {"flush_all", "flush_all 9 noreply", "verbosity 1", "stats detail dump", "stats detail on", "stats conns",
        "stats cachedump 1 1", "stats reset", "watch", "watch fetchers", "lru_crawler metadump all",
        "lru_crawler mgdump all", "lru_crawler enable", "cache_memlimit 64", "shutdown", "debugtime 5", "refresh_certs",
        "slabs automove 1", "lru tune 1 1 1 1"}) {
    CAPTURE(line);
    CHECK(needed(line) == kMayAdmin);
  }
  for (const char* line : {"version", "mn", "quit", "config get cluster", "stats", "stats settings", "stats items",
                           "stats slabs", "stats sizes"}) {
    CAPTURE(line);
    CHECK(needed(line) == 0);
  }
}

TEST_CASE("a key must begin with one of the prefixes; without any, every key will do") {
  const User all{"a", kEveryRight, {}};
  CHECK(may_use(all, "get anything"));
  CHECK(all.is_unrestricted());
  const User some{"b", kMayRead | kMayWrite, {"one:", "two:"}};
  CHECK_FALSE(some.is_unrestricted());
  CHECK(may_use(some, "get one:x"));
  CHECK(may_use(some, "set two: 0 0 1\r\nx"));
  CHECK_FALSE(may_use(some, "get one"));
  CHECK_FALSE(may_use(some, "get three:one:"));
  CHECK_FALSE(may_use(some, "get ONE:x"));
  CHECK(may_use(some, "mg b25lOng= b"));        // one:x
  CHECK_FALSE(may_use(some, "mg dGhyZWU= b"));  // three
  CHECK_FALSE(may_use(some, "flush_all"));
  const User reader{"c", kMayRead, {}};
  CHECK(may_use(reader, "get k"));
  CHECK_FALSE(may_use(reader, "gat 9 k"));
  const User writer{"d", kMayWrite, {}};
  CHECK(may_use(writer, "set k 0 0 1\r\nx"));
  CHECK_FALSE(may_use(writer, "get k"));
  CHECK_FALSE(may_use(writer, "incr k 0"));
  const User nobody{"e", 0, {}};
  CHECK(may_use(nobody, "version"));
  CHECK_FALSE(may_use(nobody, "get k"));
}
