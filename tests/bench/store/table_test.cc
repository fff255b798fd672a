#include "bench_store/table.h"

#include <cmath>

#include <doctest/doctest.h>

using namespace egret::bench_store;

namespace {
Table example() {
  Table table;
  table.name = std::string(1, 't');  // gcc 12 takes a literal for one that overlaps (its bug 105651)
  table.notes = {"a \"note\""};
  table.columns = {"what", "ns/op", "count"};
  table.rows = {{"get", Cell(12.345, 1), uint64_t{7}}, {"set", Cell::none(), uint64_t{0}}};
  return table;
}
}  // namespace

TEST_CASE("Markdown for people") {
  CHECK(to_markdown(example()) ==
        "a \"note\"\n\n| what | ns/op | count |\n| --- | ---: | ---: |\n| get | 12.3 | 7 |\n| set | – | 0 |\n\n");
}

TEST_CASE("JSON for machines: figures are numbers") {
  CHECK(to_json(example()) ==
        "{\"name\": \"t\", \"notes\": [\"a \\\"note\\\"\"], \"rows\": [\n"
        "  {\"what\": \"get\", \"ns/op\": 12.3, \"count\": 7},\n"
        "  {\"what\": \"set\", \"ns/op\": \"–\", \"count\": 0}]}");
}

TEST_CASE("a figure that is not finite is none") {
  CHECK(Cell(NAN, 2).text() == "–");
  CHECK_FALSE(Cell(INFINITY, 2).is_figure());
}
