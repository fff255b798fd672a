// The text of /metrics: rows, escapes, histograms; a series without a row is impossible.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "admin/address.h"
#include "admin/metrics.h"
#include "admin/process_metrics.h"

using namespace egret::admin;

namespace {

const std::vector<MetricRow> kTable = {
    {"egret_test_things_total", MetricType::kCounter, "Things.", {"backend", "lane"}},
    {"egret_test_level", MetricType::kGauge, "How high.", {}},
    {"egret_test_seconds", MetricType::kHistogram, "How long.", {"backend"}},
};

}  // namespace

TEST_CASE("a page has the rows that something was added to, in the table's order") {
  MetricPage page(kTable);
  page.add("egret_test_level", 3);
  page.add("egret_test_things_total", 5, {"one", "0"});
  page.add("egret_test_things_total", 18446744073709551615.0, {"one", "1"});
  CHECK(page.text() ==
        "# HELP egret_test_things_total Things.\n"
        "# TYPE egret_test_things_total counter\n"
        "egret_test_things_total{backend=\"one\",lane=\"0\"} 5\n"
        "egret_test_things_total{backend=\"one\",lane=\"1\"} 1.844674407370955e+19\n"
        "# HELP egret_test_level How high.\n"
        "# TYPE egret_test_level gauge\n"
        "egret_test_level 3\n");
}

TEST_CASE("counts are exact as far as Prometheus can count") {
  MetricPage page(kTable);
  page.add("egret_test_level", 9007199254740991.0);  // 2^53 - 1
  CHECK(page.text().find("egret_test_level 9007199254740991\n") != std::string::npos);
}

TEST_CASE("a label may hold anything and the page stays one of printable lines") {
  MetricPage page(kTable);
  page.add("egret_test_things_total", 1, {"a\"b\\c", "line\nbreak \xff"});
  CHECK(page.text().find("{backend=\"a\\\"b\\\\c\",lane=\"line\\\\nbreak \\\\xff\"} 1\n") != std::string::npos);
}

TEST_CASE("a histogram has its buckets, and one of all") {
  MetricPage page(kTable);
  page.add("egret_test_seconds", {.buckets = {{0.001, 2}, {0.004, 3}}, .count = 4, .sum = 1.5}, {"one"});
  CHECK(page.text() ==
        "# HELP egret_test_seconds How long.\n"
        "# TYPE egret_test_seconds histogram\n"
        "egret_test_seconds_count{backend=\"one\"} 4\n"
        "egret_test_seconds_sum{backend=\"one\"} 1.5\n"
        "egret_test_seconds_bucket{backend=\"one\",le=\"0.001\"} 2\n"
        "egret_test_seconds_bucket{backend=\"one\",le=\"0.004\"} 3\n"
        "egret_test_seconds_bucket{backend=\"one\",le=\"+Inf\"} 4\n");
}

TEST_CASE("the table as Markdown") {
  CHECK(metrics_markdown(kTable) ==
        "| metric | type | labels | what it says |\n| --- | --- | --- | --- |\n"
        "| `egret_test_things_total` | counter | `backend`, `lane` | Things. |\n"
        "| `egret_test_level` | gauge |  | How high. |\n"
        "| `egret_test_seconds` | histogram | `backend` | How long. |\n");
}

TEST_CASE("every row of a process has its series") {
  const std::vector<MetricRow> rows = process_metric_rows("egret_test");
  MetricPage page(rows);
  add_process_metrics(page, "egret_test");
  const std::string text = page.text();
  for (const MetricRow& row : rows) CHECK(text.find("# TYPE " + row.name + " ") != std::string::npos);
}

TEST_CASE("admin addresses") {
  for (const std::string good :
       {"127.0.0.1:11280", "[::1]:0", "*:65535", "localhost:80", "unix:/run/egret/admin.sock"}) {
    CAPTURE(good);
    const auto parsed = parse_address(good);
    REQUIRE(parsed.is_ok());
    CHECK(parsed.value().to_string() == good);
  }
  for (const std::string bad : {"", ":", "11280", ":11280", "host:", "host:65536", "host:-1", "host:1x", "::1:11280",
                                "[]:1", "unix:", "http://host"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_address(bad).is_ok());
  }
}
