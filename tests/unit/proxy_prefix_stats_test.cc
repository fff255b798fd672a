// `stats detail`: counts by prefix.
#include <string>

#include <doctest/doctest.h>

#include "proxy/commands/prefix_stats.h"

using egret::proxy::PrefixStats;

TEST_CASE("gets, hits, sets and deletes are counted by what stands before the first colon") {
  PrefixStats stats;
  CHECK_FALSE(stats.is_on());
  stats.turn(true);
  CHECK(stats.is_on());
  CHECK(stats.report() == "END\r\n");
  stats.count_get("user:1", true);
  stats.count_get("user:2:x", false);
  stats.count_set("user:1");
  stats.count_delete("user:1");
  stats.count_set("other:1");
  stats.count_set(":nothing");
  stats.count_get("no prefix", true);
  CHECK(stats.report() ==
        "PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX other get 0 hit 0 set 1 del 0\r\n"
        "PREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n");
  stats.clear();
  CHECK(stats.report() == "END\r\n");
}

TEST_CASE("prefixes beyond the limit are not counted") {
  PrefixStats stats;
  for (size_t i = 0; i < PrefixStats::kMostPrefixes; ++i) stats.count_set(std::to_string(i) + ":");
  stats.count_set("one more:");
  stats.count_set("5:");
  const std::string report = stats.report();
  CHECK(report.find("one more") == report.npos);
  CHECK(report.find("PREFIX 5 get 0 hit 0 set 2 del 0\r\n") != report.npos);
}
