#include "bench/duel.h"

#include <doctest/doctest.h>

#include "bench/report.h"

using namespace egret::bench;

namespace {

CaseResult pairs(std::initializer_list<double> subject, std::initializer_list<double> peer) {
  CaseResult result;
  result.name = "a \"case\"";
  result.subject_name = "S";
  result.peer_name = "P";
  for (const double each : subject) result.subject.emplace_back().cpu_us_per_op = each;
  for (const double each : peer) result.peer.emplace_back().cpu_us_per_op = each;
  return result;
}

}  // namespace

TEST_CASE("medians of odd, even and no counts") {
  CHECK(median_of(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median_of(std::vector<double>{4, 1, 2, 3}) == 2.5);
  CHECK(median_of(std::vector<double>{}) == 0);
}

TEST_CASE("ratios are taken pair by pair") {
  const Ratio ratio = ratio_of(pairs({1, 4, 30}, {2, 4, 10}), &LoadResult::cpu_us_per_op);
  CHECK(ratio.median == 1);
  CHECK(ratio.min == 0.5);
  CHECK(ratio.max == 3);
}

TEST_CASE("there is no ratio without a peer or to nothing") {
  CHECK(ratio_of(pairs({1}, {}), &LoadResult::cpu_us_per_op).median == 0);
  CHECK(ratio_of(pairs({1}, {0}), &LoadResult::cpu_us_per_op).median == 0);
}

TEST_CASE("reports hold every side and escape what they quote") {
  const auto result = pairs({1, 2}, {2, 2});
  CHECK(to_json({result}).find("\"a \\\"case\\\"\"") != std::string::npos);
  const std::string table = to_markdown({result});
  CHECK(table.find("| S | ") != std::string::npos);
  CHECK(table.find("0.75 (0.50–1.00)") != std::string::npos);
}

TEST_CASE("every case of the suite is a valid load") {
  for (const SuiteCase& each : suite_cases(LoadSpec{})) CHECK(check_spec(each.spec).is_ok());
}
