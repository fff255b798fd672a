// Reports of made-up rounds: ratios, verdicts, and the same figures in both forms.
#include "bench_compare/report.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace egret;
using namespace egret::bench_compare;
using bench::Sending;

namespace {

Series series(std::string_view name, std::initializer_list<double> cpu, Sending sending = Sending::kRounds) {
  Series made{std::string(name), sending, {}};
  for (const double each : cpu) made.rounds.push_back({{kCpu.key, each}, {kThroughput.key, 1'000'000 / each}});
  return made;
}

Report report_of(std::vector<Series> all, std::vector<Goal> goals) {
  Report report;
  for (const Series& each : all) {
    if (!report.has(each.contender)) report.contenders.present.push_back({each.contender, "1.6.18", "", true, {}});
  }
  report.rounds.rounds = 3;
  report.duration_s = 0.5;
  RowResult row;
  row.row.name = "a row";
  row.row.goals = std::move(goals);
  for (const Sending sending : {Sending::kAtOnce, Sending::kRounds}) {
    const auto is_there = [sending](const Series& each) { return each.sending == sending; };
    if (std::any_of(all.begin(), all.end(), is_there)) row.row.sendings.push_back(sending);
  }
  row.series = std::move(all);
  report.rows.push_back(std::move(row));
  return report;
}

const Goal kCpuGoal{kCpu, kMemcached, Bound::kAtMost, 1.0};

}  // namespace

TEST_CASE("a goal is met by the median, up to its very target") {
  CHECK(judge(kCpuGoal, {1.0, 0.5, 3.0}) == Verdict::kMet);
  CHECK(judge(kCpuGoal, {1.01, 0.5, 3.0}) == Verdict::kMissed);
  CHECK(judge(kCpuGoal, {}) == Verdict::kNotMeasured);
  const Goal throughput{kThroughput, kMemcached, Bound::kAtLeast, 1.2};
  CHECK(judge(throughput, {1.2, 0.5, 3.0}) == Verdict::kMet);
  CHECK(judge(throughput, {1.19, 0.5, 3.0}) == Verdict::kMissed);
}

TEST_CASE("ratios are taken round by round, against the peer that is asked for") {
  const Report report = report_of({series(kEgret, {1, 4, 30}), series(kMemcached, {2, 4, 10})}, {kCpuGoal});
  const bench::Ratio ratio = ratio_of(report.rows[0], kCpu, kMemcached, Sending::kRounds);
  CHECK(ratio.median == 1);
  CHECK(ratio.min == 0.5);
  CHECK(ratio.max == 3);
  CHECK(ratio_of(report.rows[0], kCpu, kTwemproxy, Sending::kRounds).median == 0);
  CHECK(ratio_of(report.rows[0], kP99, kMemcached, Sending::kRounds).median == 0);
  CHECK(ratio_of(report.rows[0], kCpu, "", Sending::kRounds).median == 4);
}

TEST_CASE("Markdown has ratio, spread, goal and verdict, and the figures of each contender") {
  const Report report = report_of({series(kEgret, {1, 2, 3}), series(kMemcached, {4, 4, 4})}, {kCpuGoal});
  const std::string text = to_markdown(report);
  CHECK(text.find("Egret 1.6.18, memcached 1.6.18: 3 rounds of 0.5 s") != std::string::npos);
  CHECK(text.find("| a row | **0.50** (0.25–0.75) ≤ 1 ✓ | **2.00** (1.33–4.00) | – | – |") != std::string::npos);
  CHECK(text.find("| a row | rounds | 2.00 / 4.00 | 500,000 / 250,000 | – | – | – |") != std::string::npos);
}

TEST_CASE("a missed goal, a later one, and one without a column") {
  const Goal later{kCpu, kMemcached, Bound::kAtMost, 1.2, 1.0};
  const Goal own{kMemory, "", Bound::kAtMost, 20};
  Report report = report_of({series(kEgret, {2}), series(kMemcached, {1})}, {later, own});
  report.rows[0].series[0].rounds[0][kMemory.key] = 5;
  const std::string text = to_markdown(report);
  CHECK(text.find("**2.00** (2.00–2.00) ≤ 1.2 ✗, then 1 ✗") != std::string::npos);
  report.rows[0].series[0].rounds[0][kCpu.key] = 1.1;
  CHECK(to_markdown(report).find("≤ 1.2 ✓, then 1 ✗") != std::string::npos);
  CHECK(nlohmann::json::parse(to_json(report))["rows"][0]["goals"][0]["later_verdict"] == "missed");
  CHECK(text.find("resident, KiB: **5.00** (5.00–5.00) ≤ 20 ✓") != std::string::npos);
  CHECK(text.find("resident KiB: 5.00 / – |") != std::string::npos);
}

TEST_CASE("a goal for a figure of Egret's own is named, be there a column for the same figure beside a peer") {
  const Goal own{kThroughput, "", Bound::kAtLeast, 8e6};
  const std::string text = to_markdown(report_of({series(kEgret, {0.5}), series(kMemcached, {1})}, {own}));
  CHECK(text.find(
            "| **2.00** (2.00–2.00) | – | throughput, ops/s: **2,000,000** (2,000,000–2,000,000) ≥ 8,000,000 ✗ |") !=
        std::string::npos);
}

TEST_CASE("the one process has a table of its own, with its goals, each judged by the worse way of sending") {
  const Goal cpu{kCpu, kMemcached, Bound::kAtMost, 0.8, 0, kOneProcess};
  const Goal kept{kKept, kMemcached, Bound::kAtLeast, 1.0, 0, kOneProcess};
  Report report = report_of({series(kEgret, {4}, Sending::kAtOnce), series(kOneProcess, {2}, Sending::kAtOnce),
                             series(kMemcached, {2}, Sending::kAtOnce), series(kEgret, {4}), series(kOneProcess, {1}),
                             series(kMemcached, {2})},
                            {kCpuGoal, cpu, kept});
  const std::string text = to_markdown(report);
  CHECK(text.find(
            "| a row | **1.00** (1.00–1.00) / 0.50 (0.50–0.50) ≤ 0.8 ✗ | **1.00** (1.00–1.00) / 2.00 (2.00–2.00) | – | "
            "**0.50** (0.50–0.50) / 0.25 (0.25–0.25) | **2.00** (2.00–2.00) / 4.00 (4.00–4.00) | "
            "throughput kept ÷ memcached's: – |") != std::string::npos);
  CHECK(text.find("| a row | **2.00** (2.00–2.00) / 2.00 (2.00–2.00) ≤ 1 ✗ | **0.50**") != std::string::npos);
  const auto row = nlohmann::json::parse(to_json(report))["rows"][0];
  CHECK(row["goals"].size() == 1);
  const auto goals = row["one_process_goals"];
  CHECK(goals[0]["measured"]["median"] == 1.0);
  CHECK(goals[0]["verdict"] == "missed");
  CHECK(goals[1]["verdict"] == "not measured");
}

TEST_CASE("who is left out is said, and leaves no hole") {
  Report report = report_of({series(kEgret, {1})}, {kCpuGoal});
  report.contenders.left_out.push_back("memcached is left out: it is not installed");
  const std::string text = to_markdown(report);
  CHECK(text.find("memcached is left out: it is not installed.") != std::string::npos);
  CHECK(text.find("| a row | – | – | – | – |") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["left_out"].size() == 1);
  CHECK_FALSE(json["rows"][0].contains("one_process_goals"));
}

TEST_CASE("JSON has the rounds, their medians, the ratios and the verdicts") {
  Report report = report_of({series(kEgret, {1, 2, 3}), series(kMemcached, {4, 4, 4})}, {kCpuGoal});
  report.rows[0].errors = 2;
  const auto json = nlohmann::json::parse(to_json(report));
  const auto& row = json["rows"][0];
  CHECK(row["name"] == "a row");
  const auto& rounds = row["sendings"]["rounds"];
  CHECK(rounds["contenders"]["Egret"]["rounds"].size() == 3);
  CHECK(rounds["contenders"]["Egret"]["median"]["cpu_us_per_op"] == 2);
  CHECK(rounds["ratios"]["memcached"]["cpu_us_per_op"]["min"] == 0.25);
  CHECK(row["goals"][0]["at_most"] == 1);
  CHECK(row["goals"][0]["verdict"] == "met");
  CHECK(json["errors"] == 2);
  CHECK(json["depth_16_goals_halved"] == true);
}

TEST_CASE("a goal is judged by the worse way of sending, which is bold") {
  const Report report = report_of({series(kEgret, {1.2}, Sending::kAtOnce), series(kMemcached, {1}, Sending::kAtOnce),
                                   series(kEgret, {0.5}), series(kMemcached, {1})},
                                  {kCpuGoal});
  const Worse worse = worse_of(report.rows[0], kCpuGoal);
  CHECK(worse.sending == Sending::kAtOnce);
  CHECK(worse.ratio.median == 1.2);
  const Goal throughput{kThroughput, kMemcached, Bound::kAtLeast, 1.0};
  CHECK(worse_of(report.rows[0], throughput).ratio.median < 1);
  const std::string text = to_markdown(report);
  CHECK(text.find("| a row | **1.20** (1.20–1.20) / 0.50 (0.50–0.50) ≤ 1 ✗ | **0.83** (0.83–0.83) / 2.00") !=
        std::string::npos);
  CHECK(text.find("| a row | at once | 1.20 / 1.00 |") != std::string::npos);
  CHECK(text.find("| a row | rounds | 0.50 / 1.00 |") != std::string::npos);
  const auto row = nlohmann::json::parse(to_json(report))["rows"][0];
  CHECK(row["goals"][0]["sending"] == "at once");
  CHECK(row["goals"][0]["verdict"] == "missed");
  CHECK(row["sendings"]["at once"]["ratios"]["memcached"]["cpu_us_per_op"]["median"] == 1.2);
}

TEST_CASE("beside a base, only what every round says is a change") {
  CHECK(change_of({1.05, 1.01, 1.2}, Bound::kAtMost) == Change::kWorse);
  CHECK(change_of({1.05, 0.99, 1.2}, Bound::kAtMost) == Change::kWithinSpread);
  CHECK(change_of({0.9, 0.8, 0.99}, Bound::kAtMost) == Change::kBetter);
  CHECK(change_of({0.9, 0.8, 0.99}, Bound::kAtLeast) == Change::kWorse);
  CHECK(change_of({}, Bound::kAtMost) == Change::kNotMeasured);
}

TEST_CASE("beside a base, each row and way of sending has its ratio, spread and verdict") {
  Report report = report_of({series(kEgret, {2, 3}, Sending::kAtOnce), series(kBase, {1, 2}, Sending::kAtOnce),
                             series(kEgret, {1, 2}), series(kBase, {2, 1})},
                            {});
  const std::string text = to_markdown(report);
  CHECK(text.find("| a row | at once | **1.75** (1.50–2.00) | **0.58** (0.50–0.67) | – | – | **worse beyond the "
                  "spread** |") != std::string::npos);
  CHECK(text.find("| a row | rounds | **1.25** (0.50–2.00) | **1.25** (0.50–2.00) | – | – | within the spread |") !=
        std::string::npos);
  CHECK(text.find("1 line is worse beyond the spread") != std::string::npos);
  const auto row = nlohmann::json::parse(to_json(report))["rows"][0];
  CHECK(row["sendings"]["at once"]["beside_base"] == "worse");
  CHECK(row["sendings"]["rounds"]["beside_base"] == "within the spread");
  CHECK(to_markdown(report_of({series(kEgret, {1})}, {})).find("base") == std::string::npos);
}

TEST_CASE("beside a base the one process has lines of its own, and a row in which the base takes no part has none") {
  const Report report = report_of(
      {series(kEgret, {1, 2}), series(kOneProcess, {1, 1}), series(kBase, {1, 2}), series(kBaseOneProcess, {2, 4})},
      {});
  const std::string text = to_markdown(report);
  CHECK(text.find("| a row | rounds | **1.00** (1.00–1.00)") != std::string::npos);
  CHECK(text.find("| a row, one process | rounds | **0.38** (0.25–0.50) | **3.00** (2.00–4.00) | – | – | better beyond "
                  "the spread |") != std::string::npos);
  const auto row = nlohmann::json::parse(to_json(report))["rows"][0]["sendings"]["rounds"];
  CHECK(row["beside_base"] == "within the spread");
  CHECK(row["one_process_beside_base"] == "better");
  Report with_another = report;
  with_another.rows.push_back(report_of({series(kEgret, {1})}, {}).rows[0]);
  with_another.rows[1].row.name = "another row";
  CHECK(to_markdown(with_another).find("not measured") == std::string::npos);
}
