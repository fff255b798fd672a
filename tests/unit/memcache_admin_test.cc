// The operator's lines: the requests that they become, and their answers.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memcache/admin.h"
#include "memcache/reply.h"
#include "memcache/uri.h"

using namespace egret::memcache;

namespace {
std::string answer_to(std::string_view line) {
  const AdminRequest request = parse_admin(line);
  CHECK(request.action == AdminAction::kAnswer);
  return std::string(request.answer.substr(0, request.answer.find('\r')));
}
}  // namespace

TEST_CASE("the command words are known, others are not") {
  for (const std::string_view word :
       {"lru_crawler", "watch", "cache_memlimit", "slabs", "lru", "extstore", "shutdown", "refresh_certs"}) {
    CHECK(is_admin_word(word));
  }
  for (const std::string_view word : {"", "get", "lru_crawle", "lru_crawlers", "Watch", "stats", "slab"}) {
    CHECK_FALSE(is_admin_word(word));
    CHECK(answer_to(word) == "ERROR");
  }
}

TEST_CASE("a dump is of all classes or of those that are named") {
  for (const std::string_view all : {"all", "hash"}) {
    const AdminRequest request = parse_admin("lru_crawler metadump " + std::string(all));
    CHECK(request.action == AdminAction::kDump);
    CHECK(request.form == DumpForm::kMeta);
    CHECK(request.classes.all());
  }
  const AdminRequest some = parse_admin("lru_crawler mgdump 3,1,,96,");
  CHECK(some.action == AdminAction::kDump);
  CHECK(some.form == DumpForm::kCommands);
  CHECK(some.classes.count() == 3);
  CHECK((some.classes[1] && some.classes[3] && some.classes[96]));
  for (const std::string_view bad : {"0", "97", "x", "1,x", "-1", ",", "All"}) {
    const AdminRequest refused = parse_admin("lru_crawler metadump " + std::string(bad));
    CHECK(refused.action == AdminAction::kCrawl);
    CHECK(refused.answer == "BADCLASS invalid class id\r\n");
  }
  CHECK(parse_admin("lru_crawler crawl 1").answer == kOk);
  CHECK(parse_admin("lru_crawler enable").action == AdminAction::kEnableCrawler);
  CHECK(parse_admin("lru_crawler disable").action == AdminAction::kDisableCrawler);
  for (const std::string_view bad : {"lru_crawler", "lru_crawler metadump", "lru_crawler metadump 1 2",
                                     "lru_crawler x y", "lru_crawler enabled", "lru_crawler crawls 1"}) {
    CHECK(answer_to(bad) == "ERROR");
  }
  CHECK(answer_to("lru_crawler sleep 1000000") == "OK");
  CHECK(answer_to("lru_crawler sleep 1000001") == "CLIENT_ERROR sleep must be one second or less");
  CHECK(answer_to("lru_crawler tocrawl x") == "CLIENT_ERROR bad command line format");
}

TEST_CASE("stats cachedump names one class and how many items") {
  const AdminRequest request = parse_cachedump("5", "10");
  CHECK(request.action == AdminAction::kDump);
  CHECK(request.form == DumpForm::kItems);
  CHECK(request.most_items == 10);
  CHECK(request.classes.count() == 1);
  CHECK(request.classes[5]);
  CHECK(parse_cachedump("5", "").answer == "CLIENT_ERROR bad command line\r\n");
  CHECK(parse_cachedump("x", "1").answer == "CLIENT_ERROR bad command line format\r\n");
  CHECK(parse_cachedump("1", "y").answer == "CLIENT_ERROR bad command line format\r\n");
  CHECK(parse_cachedump("97", "1").answer == "CLIENT_ERROR Illegal slab id\r\n");
}

TEST_CASE("config get cluster, and no other config") {
  CHECK(parse_admin("config get cluster").action == AdminAction::kShowCluster);
  for (const std::string_view bad : {"config", "config get", "config set cluster", "config get cluster x"}) {
    CHECK(answer_to(bad) == "ERROR");
  }
}

TEST_CASE("watch takes memcached's streams, fetchers without any") {
  CHECK(parse_admin("watch").streams == kFetchers);
  const AdminRequest all = parse_admin("watch fetchers mutations evictions connevents deletions sysevents rawcmds");
  CHECK(all.action == AdminAction::kWatch);
  CHECK(all.streams == (kFetchers | kMutations | kEvictions | kConnectionEvents | kDeletions));
  CHECK(answer_to("watch fetchers x") == "ERROR");
}

TEST_CASE("a memory limit is in megabytes") {
  const AdminRequest request = parse_admin("cache_memlimit 64");
  CHECK(request.action == AdminAction::kMemoryLimit);
  CHECK(request.number == 64u << 20);
  CHECK_FALSE(request.noreply);
  CHECK(parse_admin("cache_memlimit 64 noreply").noreply);
  CHECK(answer_to("cache_memlimit 7") == "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
  CHECK(answer_to("cache_memlimit 1000000001") == "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes");
  for (const std::string_view bad : {"cache_memlimit", "cache_memlimit x"}) {
    CHECK(answer_to(bad) == "ERROR");
  }
}

TEST_CASE("what has no meaning here is answered as memcached does") {
  const std::vector<std::pair<std::string_view, std::string_view>> lines = {
      {"slabs reassign 1 2", "NOSPARE source class has no spare pages"},
      {"slabs reassign 1 1", "SAME src and dst class are identical"},
      {"slabs reassign 300 2", "BADCLASS invalid src or dst class id"},
      {"slabs reassign a b", "CLIENT_ERROR bad command line format"},
      {"slabs reassign 1", "ERROR"},
      {"slabs automove 2", "OK"},
      {"slabs automove 3", "ERROR"},
      {"slabs automove x", "CLIENT_ERROR bad command line format"},
      {"slabs automove ratio 0.7", "OK"},
      {"slabs automove ratio", "ERROR"},
      {"slabs automove freeratio 0.1", "OK"},
      {"slabs automove window 3", "OK"},
      {"slabs automove window 1801", "CLIENT_ERROR automove window too low or too high"},
      {"slabs automove window", "CLIENT_ERROR bad command line format"},
      {"slabs", "ERROR"},
      {"lru mode flat", "OK"},
      {"lru mode bent", "ERROR"},
      {"lru", "ERROR"},
      {"lru tune 10 20 0.1 2.0", "OK"},
      {"lru tune 50 40 1 1", "ERROR hot and warm pcts must not exceed 80"},
      {"lru tune 1 1 0 1", "ERROR hot/warm age factors must be greater than 0"},
      {"lru tune 1 2 3", "ERROR"},
      {"lru temp_ttl -1", "OK"},
      {"lru temp_ttl x", "ERROR"},
      {"extstore item_size 5", "OK"},
      {"extstore max_frag 0.5", "OK"},
      {"extstore free_memchunks 1 2", "OK"},
      {"extstore free_memchunks 64 2", "ERROR"},
      {"extstore x y", "ERROR"},
      {"extstore", "ERROR"},
  };
  for (const auto& each : lines) CHECK_MESSAGE(answer_to(each.first) == each.second, each.first);
  CHECK(parse_admin("lru mode flat noreply").noreply);
  CHECK(parse_admin("slabs automove 1 noreply").noreply);
  CHECK(parse_admin("lru_crawler x noreply").noreply);
  CHECK_FALSE(parse_admin("watch noreply").noreply);
}

TEST_CASE("words may be cut short, and mean the first that begins so") {
  CHECK(parse_admin("lru_crawler meta all").form == DumpForm::kMeta);
  CHECK(parse_admin("lru_crawler m 1").action == AdminAction::kDump);
  CHECK(parse_admin("watch e m").streams == (kEvictions | kMutations));
  CHECK(answer_to("slabs au 1") == "OK");
  CHECK(answer_to("lru mode seg") == "OK");
  CHECK(answer_to("slabs automoves 1") == "ERROR");
  CHECK(parse_detail("d").action == AdminAction::kDetailDump);
  CHECK(parse_detail("").action == AdminAction::kAnswer);
}

TEST_CASE("debugtime goes forward by seconds") {
  const AdminRequest request = parse_admin("debugtime 60");
  CHECK(request.action == AdminAction::kMoveClock);
  CHECK(request.number == 60);
  for (const std::string_view bad :
       {"debugtime", "debugtime -1", "debugtime x", "debugtime p", "debugtime 99999999999"})
    CHECK(answer_to(bad) == "ERROR");
}

TEST_CASE("shutdown has two ways") {
  CHECK(parse_admin("shutdown").action == AdminAction::kShutdown);
  CHECK(parse_admin("shutdown").answer.empty());
  CHECK(parse_admin("shutdown graceful").answer.empty());
  CHECK(parse_admin("shutdown now").answer == "CLIENT_ERROR invalid shutdown mode\r\n");
}

TEST_CASE("keys are written as in a URI") {
  std::string text;
  append_uri_encoded(text, std::string_view("aZ09-._~:/ %\0\xff", 14));
  CHECK(text == "aZ09-._~%3A%2F%20%25%00%FF");
}
