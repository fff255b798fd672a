// `stats detail`: counts by prefix.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "proxy/commands/prefix_stats.h"
#include "proxy_paged.h"

using egret::proxy::PagedReport;
using egret::proxy::PrefixStats;
using egret::proxy::whole;

TEST_CASE("gets, hits, sets and deletes are counted by what stands before the first colon") {
  PrefixStats stats;
  CHECK_FALSE(stats.is_on());
  stats.turn(true);
  CHECK(stats.is_on());
  CHECK(whole(stats.report()) == "END\r\n");
  stats.count_get("user:1", true);
  stats.count_get("user:2:x", false);
  stats.count_set("user:1");
  stats.count_delete("user:1");
  stats.count_set("other:1");
  stats.count_set(":nothing");
  stats.count_get("no prefix", true);
  CHECK(whole(stats.report()) ==
        "PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX other get 0 hit 0 set 1 del 0\r\n"
        "PREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n");
  stats.clear();
  CHECK(whole(stats.report()) == "END\r\n");
}

TEST_CASE("prefixes beyond the limit are not counted") {
  PrefixStats stats;
  for (size_t i = 0; i < PrefixStats::kMostPrefixes; ++i) stats.count_set(std::to_string(i) + ":");
  stats.count_set("one more:");
  stats.count_set("5:");
  const std::string report = whole(stats.report());
  CHECK(report.find("one more") == report.npos);
  CHECK(report.find("PREFIX 5 get 0 hit 0 set 2 del 0\r\n") != report.npos);
}

TEST_CASE("a prefix that would break the line is encoded") {
  PrefixStats stats;
  stats.count_set("a\r\nEND\r\nSTORED:x");
  stats.count_set("a b:x");
  stats.count_set("a/b:x");
  CHECK(whole(stats.report()) ==
        "PREFIX a%0D%0AEND%0D%0ASTORED get 0 hit 0 set 1 del 0\r\nPREFIX a%20b get 0 hit 0 set 1 del 0\r\n"
        "PREFIX a/b get 0 hit 0 set 1 del 0\r\nEND\r\n");
}

TEST_CASE("many prefixes are told of page by page, each once, whatever is counted meanwhile") {
  PrefixStats stats;
  constexpr size_t kPrefixes = 5000;
  const auto key = [](size_t i) { return std::to_string(1'000'000 + i) + std::string(200, '\n') + ":"; };
  for (size_t i = 0; i < kPrefixes; ++i) stats.count_set(key(i));
  const auto report = stats.report();
  std::string all;
  size_t largest = 0;
  for (bool more = true; more;) {
    std::string page;
    more = report->next(page);
    largest = std::max(largest, page.size());
    all += page;
    stats.count_set("0 comes before:" + std::to_string(all.size()));
  }
  CHECK(largest < 2 * PagedReport::kPageBytes);
  CHECK(all.ends_with("\r\nEND\r\n"));
  size_t at = 0;
  for (size_t i = 0; i < kPrefixes; ++i) {
    at = all.find("PREFIX " + std::to_string(1'000'000 + i) + "%0A", at);
    REQUIRE(at != all.npos);
  }
  CHECK(static_cast<size_t>(std::ranges::count(all, '\n')) == kPrefixes + 1);
}

TEST_CASE("a report whose prefixes are cleared ends") {
  PrefixStats stats;
  for (size_t i = 0; i < 5000; ++i) stats.count_set(std::to_string(i) + ":");
  const auto report = stats.report();
  std::string text;
  CHECK(report->next(text));
  stats.clear();
  text.clear();
  CHECK(!report->next(text));
  CHECK(text == "END\r\n");
}
