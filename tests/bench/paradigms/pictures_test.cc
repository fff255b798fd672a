// Pictures and the model's table of a report with made-up figures.
#include "bench_paradigms/report/pictures.h"

#include <doctest/doctest.h>

#include "bench_paradigms/model/modelled.h"
#include "bench_paradigms/report/lines.h"
#include "bench_paradigms/report/report.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

void post(VerbCounts& counts, Verb verb, uint32_t bytes, uint64_t count) {
  counts.posted[0][static_cast<size_t>(verb)] += count;
  counts.by_size[0][static_cast<size_t>(verb)][static_cast<size_t>(std::bit_width(bytes))] = {count, count * bytes};
  counts.doorbells += count;
}

// A get of `fetch` is a WRITE and a READ, one of `reply` a WRITE on each side.
CaseReport case_of(uint32_t value_bytes, double rate, double mops, double p50) {
  CaseReport one;
  one.workload = {value_bytes, 1, rate};
  for (const char* id : {"fetch", "reply"}) {
    Row row;
    row.id = id;
    row.ops = 1000;
    row.mops = {mops, mops, mops};
    row.p50_us = {p50, p50, p50};
    post(row.clients, Verb::kWrite, 32, 1000);
    if (row.id == "fetch")
      post(row.clients, Verb::kRead, value_bytes, 1000);
    else
      post(row.servers, Verb::kWrite, value_bytes, 1000);
    one.rows.push_back(row);
  }
  Row missing;
  missing.id = "atomics";
  missing.not_available = "the device has none";
  one.rows.push_back(missing);
  return one;
}

std::vector<std::string> names_of(const std::vector<Picture>& pictures) {
  std::vector<std::string> names;
  for (const Picture& each : pictures) names.push_back(each.name);
  return names;
}

Report counted_report() {
  Report report;
  report.is_in_memory = true;
  report.cases = {case_of(32, 0, 0, 0), case_of(1024, 0, 0, 0)};
  return report;
}

}  // namespace

TEST_CASE("counts alone give pictures of verbs; with a card, rates by size, called modelled") {
  Report report = counted_report();
  CHECK(names_of(draw_pictures(report)) == std::vector<std::string>{"verbs-32B-100.svg", "verbs-1024B-100.svg"});
  report.nic = egret::bench_nic::read_nic("cx3-40").value();
  const auto pictures = draw_pictures(report);
  REQUIRE(pictures.size() == 3);
  CHECK(pictures[1].name == "rate-by-size-100.svg");
  CHECK(pictures[1].svg.find("modelled") != std::string::npos);
  CHECK(pictures[1].svg.find(">fetch<") != std::string::npos);
  CHECK(pictures[1].svg.find("atomics") == std::string::npos);
}

TEST_CASE("times of a real device give rates by size and latencies by rate") {
  Report report;
  report.device.device = "mlx5_0";
  report.cases = {case_of(32, 0, 5, 3), case_of(1024, 0, 3, 4), case_of(32, 1e6, 1, 2), case_of(32, 2e6, 2, 4)};
  CHECK(names_of(draw_pictures(report)) == std::vector<std::string>{"verbs-32B-100.svg", "rate-by-size-100.svg",
                                                                    "verbs-1024B-100.svg",
                                                                    "latency-by-rate-32B-100.svg"});
}

TEST_CASE("an emulated device's times are not drawn") {
  Report report;
  report.device.is_emulated = true;
  report.cases = {case_of(32, 0, 5, 3), case_of(1024, 0, 3, 4), case_of(32, 1e6, 1, 2), case_of(32, 2e6, 2, 4)};
  CHECK(names_of(draw_pictures(report)) == std::vector<std::string>{"verbs-32B-100.svg", "verbs-1024B-100.svg"});
}

TEST_CASE("names of lines that end at one place do not cover each other") {
  LineChart chart{"t", "s", "x", "y", false, false, {}};
  for (const char* name : {"one", "two", "three"}) chart.lines.push_back({name, {{1, 5}, {2, 10}}});
  const std::string svg = draw_lines(chart);
  const auto height_of = [&svg](const std::string& name) {
    const size_t text = svg.rfind("<text", svg.rfind(">" + name + "<"));
    return std::stod(svg.substr(svg.find(" y=\"", text) + 4));
  };
  CHECK(height_of("two") - height_of("one") >= 14);
  CHECK(height_of("three") - height_of("two") >= 14);
}

TEST_CASE("the report says what the verbs would do on a card, what limits each, and that it is modelled") {
  Report report = counted_report();
  report.nic = egret::bench_nic::read_nic("cx3-40").value();
  report.setting.server_cores = 4;
  const std::string text = to_markdown(report);
  CHECK(text.find("Modelled on `cx3-40`") != std::string::npos);
  CHECK(text.find("| `reply` | 2.11 | the server's card, out-bound verbs |") != std::string::npos);
  CHECK(text.find("**Best store by the model: `fetch`**") != std::string::npos);
  CHECK(text.find("Modelled, not measured") != std::string::npos);
  CHECK(to_json(report).find("\"what\": \"the server's card, out-bound verbs\"") != std::string::npos);
}

TEST_CASE("a row with wrong answers is not the model's best") {
  Report report = counted_report();
  report.nic = egret::bench_nic::read_nic("cx3-40").value();
  report.cases[0].rows[0].wrong = 1;
  const auto rows = model_rows(*report.nic, report, report.cases[0]);
  REQUIRE(rows.size() == 2);
  CHECK(best_of(rows, Class::kStore)->row->id == "reply");
  CHECK(best_of(rows, Class::kSequencer) == nullptr);
}
