// The text of `stats items`, `stats slabs` and `stats sizes`: memcached's names and form, figures that fit together.
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "proxy/report/class_report.h"

using namespace egret::proxy;
using egret::op::ClassField;

namespace {

egret::pool::ClassStats with(egret::pool::ClassStats classes, uint32_t size_class, ClassField field, uint64_t value) {
  if (size_class >= classes.size()) classes.resize(size_class + 1);
  classes[size_class][static_cast<size_t>(field)] = value;
  return classes;
}

// As they come; each line is well-formed.
std::vector<std::pair<std::string, uint64_t>> rows_of(const std::string& text) {
  std::vector<std::pair<std::string, uint64_t>> rows;
  REQUIRE(text.ends_with("END\r\n"));
  std::istringstream lines(text.substr(0, text.size() - 5));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string stat, name;
    uint64_t value = 0;
    words >> stat >> name >> value;
    CHECK(line == "STAT " + name + " " + std::to_string(value) + "\r");
    rows.emplace_back(name, value);
  }
  return rows;
}

std::map<std::string, uint64_t> map_of(const std::string& text) {
  const auto rows = rows_of(text);
  std::map<std::string, uint64_t> map(rows.begin(), rows.end());
  CHECK(map.size() == rows.size());
  return map;
}

}  // namespace

TEST_CASE("an empty store has no classes") {
  for (const egret::pool::ClassStats& classes : {egret::pool::ClassStats{}, egret::pool::ClassStats(20)}) {
    CHECK(items_report(classes) == "END\r\n");
    CHECK(sizes_report(classes) == "END\r\n");
    CHECK(slabs_report(classes) == "STAT active_slabs 0\r\nSTAT total_malloced 0\r\nEND\r\n");
  }
}

TEST_CASE("stats items: each field of a class under memcached's name, in memcached's order") {
  egret::pool::ClassStats classes;
  for (uint32_t field = 1; field < egret::op::kClassFields; ++field) {
    classes = with(classes, 7, static_cast<ClassField>(field), 100 + field);
  }
  const auto rows = rows_of(items_report(classes));
  const std::vector<std::pair<std::string, uint64_t>> expected = {{"number", 101},
                                                                  {"number_hot", 0},
                                                                  {"number_warm", 0},
                                                                  {"number_cold", 101},
                                                                  {"age_hot", 0},
                                                                  {"age_warm", 0},
                                                                  {"age", 111},
                                                                  {"mem_requested", 102},
                                                                  {"evicted", 103},
                                                                  {"evicted_nonzero", 104},
                                                                  {"evicted_time", 105},
                                                                  {"outofmemory", 110},
                                                                  {"tailrepairs", 0},
                                                                  {"reclaimed", 109},
                                                                  {"expired_unfetched", 108},
                                                                  {"evicted_unfetched", 106},
                                                                  {"evicted_active", 107},
                                                                  {"crawler_reclaimed", 0},
                                                                  {"crawler_items_checked", 0},
                                                                  {"lrutail_reflocked", 0},
                                                                  {"moves_to_cold", 0},
                                                                  {"moves_to_warm", 0},
                                                                  {"moves_within_lru", 0},
                                                                  {"direct_reclaims", 0},
                                                                  {"hits_to_hot", 0},
                                                                  {"hits_to_warm", 0},
                                                                  {"hits_to_cold", 0},
                                                                  {"hits_to_temp", 0}};
  REQUIRE(rows.size() == expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].first == "items:8:" + expected[i].first);  // classes are numbered from 1
    CHECK(rows[i].second == expected[i].second);
  }
}

TEST_CASE("stats items: a class that lost all its items to eviction still says so, in stats slabs it is gone") {
  const egret::pool::ClassStats classes = with({}, 9, ClassField::kEvicted, 5);
  CHECK(map_of(items_report(classes)).at("items:10:evicted") == 5);
  CHECK(map_of(slabs_report(classes)).at("active_slabs") == 0);
  CHECK(rows_of(sizes_report(classes)).empty());
}

TEST_CASE("stats slabs: pages hold all items of the class and none too many") {
  // 64 B items, 1,024 to a page; and items of up to 1 MiB, which take 16 pages each.
  for (const uint64_t number : {1u, 1023u, 1024u, 1025u, 1'000'000u}) {
    const uint32_t small = egret::op::size_class_of(64);
    const uint32_t large = egret::op::size_class_of(1 << 20);
    const auto rows =
        map_of(slabs_report(with(with({}, small, ClassField::kNumber, number), large, ClassField::kNumber, 3)));
    const std::string prefix = std::to_string(small + 1) + ":";
    CHECK(rows.at(prefix + "chunk_size") == 64);
    CHECK(rows.at(prefix + "chunks_per_page") == 1024);
    CHECK(rows.at(prefix + "total_pages") == (number + 1023) / 1024);
    CHECK(rows.at(prefix + "total_chunks") == rows.at(prefix + "total_pages") * 1024);
    CHECK(rows.at(prefix + "used_chunks") == number);
    CHECK(rows.at(prefix + "used_chunks") + rows.at(prefix + "free_chunks") == rows.at(prefix + "total_chunks"));
    for (const char* name : {"free_chunks_end", "get_hits", "cmd_set", "delete_hits", "incr_hits", "decr_hits",
                             "cas_hits", "cas_badval", "touch_hits"}) {
      CHECK(rows.at(prefix + name) == 0);
    }
    const std::string other = std::to_string(large + 1) + ":";
    CHECK(rows.at(other + "chunk_size") == 1 << 20);
    CHECK(rows.at(other + "chunks_per_page") == 1);
    CHECK(rows.at(other + "total_pages") == 3);
    CHECK(rows.at(other + "free_chunks") == 0);
    CHECK(rows.at("active_slabs") == 2);
    CHECK(rows.at("total_malloced") == rows.at(prefix + "total_pages") * 65536 + 3 * (1 << 20));
    CHECK(rows.size() == 2 * 15 + 2);
  }
}

TEST_CASE("stats sizes: one row for each class that holds items, by the largest size in it") {
  egret::pool::ClassStats classes = with({}, egret::op::size_class_of(64), ClassField::kNumber, 12);
  classes = with(classes, egret::op::size_class_of(1000), ClassField::kNumber, 3);
  classes = with(classes, egret::op::size_class_of(500), ClassField::kEvicted, 3);
  CHECK(sizes_report(classes) == "STAT 64 12\r\nSTAT 1024 3\r\nEND\r\n");
}
