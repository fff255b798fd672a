#include "bench_compare/report.h"

#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace egret::bench_compare {
namespace {

using Json = nlohmann::ordered_json;

std::string version_of(const Report& report, std::string_view name) {
  for (const Contender& each : report.contenders.present) {
    if (each.name == name) return each.version;
  }
  return "";
}

// --- Markdown

const char* mark(const Goal& goal, const bench::Ratio& ratio) {
  return judge(goal, ratio) == Verdict::kMet ? "✓" : "✗";
}

// What is to be reached after a goal.
Goal later_of(const Goal& goal) {
  Goal later = goal;
  later.target = goal.later;
  later.later = 0;
  return later;
}

// "≤ 1.2 ✓, then 1 ✗"
std::string verdict_text(const Goal& goal, const bench::Ratio& ratio) {
  std::string out =
      fmt::format("{} {:.4g} {}", goal.bound == Bound::kAtMost ? "≤" : "≥", goal.target, mark(goal, ratio));
  if (goal.later != 0) out += fmt::format(", then {:.4g} {}", goal.later, mark(later_of(goal), ratio));
  return out;
}

std::string ratio_text(const bench::Ratio& ratio) {
  return fmt::format("**{:.2f}** ({:.2f}–{:.2f})", ratio.median, ratio.min, ratio.max);
}

// "**0.80** (0.75–0.84) ≤ 1 ✓"; without a goal the ratio alone.
std::string goal_cell(const RowResult& result, const std::vector<Goal>& goals, Figure figure, std::string_view peer) {
  const bench::Ratio ratio = ratio_of(result, figure, peer);
  if (ratio.median == 0) return "–";
  const auto goal = std::find_if(goals.begin(), goals.end(),
                                 [&](const Goal& each) { return each.figure.key == figure.key && each.peer == peer; });
  if (goal == goals.end()) return ratio_text(ratio);
  return ratio_text(ratio) + " " + verdict_text(*goal, ratio);
}

// The goals that have no column of their own.
std::string further_goals(const RowResult& result, const std::vector<Goal>& goals) {
  std::string out;
  for (const Goal& each : goals) {
    if (each.figure.key == kCpu.key || each.figure.key == kThroughput.key) continue;
    if (!out.empty()) out += "; ";
    out += each.peer.empty() ? fmt::format("{}, {}: ", each.figure.name, each.figure.unit)
                             : fmt::format("{} ÷ {}'s: ", each.figure.name, each.peer);
    out += goal_cell(result, goals, each.figure, each.peer);
  }
  return out.empty() ? "–" : out;
}

std::string goals_table(const Report& report) {
  std::string out =
      "| workload | CPU per op ÷ memcached's | throughput ÷ memcached's | CPU per op ÷ twemproxy + memcached | "
      "further, ÷ "
      "memcached's |\n| --- | --- | --- | --- | --- |\n";
  for (const RowResult& each : report.rows) {
    const std::vector<Goal> goals = goals_against(each.row, version_of(report, kMemcached));
    out += fmt::format("| {} | {} | {} | {} | {} |\n", each.row.name, goal_cell(each, goals, kCpu, kMemcached),
                       goal_cell(each, goals, kThroughput, kMemcached), goal_cell(each, goals, kCpu, kTwemproxy),
                       further_goals(each, goals));
  }
  return out;
}

// With thousands apart, and about three digits of what is small.
std::string number_text(double value) {
  if (value < 10) return fmt::format("{:.2f}", value);
  if (value < 100) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

// "7.20 / 9.42 / 20.1", in the order of the contenders.
std::string figure_cell(const Report& report, const RowResult& result, Figure figure) {
  std::string out;
  bool has_any = false;
  for (const Contender& each : report.contenders.present) {
    const Series* const series = result.find(each.name);
    const bool has = series != nullptr && !series->values(figure).empty();
    has_any |= has;
    out += (out.empty() ? "" : " / ") + (has ? number_text(series->median(figure)) : std::string("–"));
  }
  return has_any ? out : "–";
}

std::string further_figures(const Report& report, const RowResult& result) {
  std::string out;
  for (const Figure& figure : {kKept, kMemory}) {
    const std::string cell = figure_cell(report, result, figure);
    const std::string_view gap = figure.unit.empty() ? "" : " ";
    if (cell != "–") out += fmt::format("{}{}{}: {}", figure.name, gap, figure.unit, cell);
  }
  return out.empty() ? "–" : out;
}

std::string figures_table(const Report& report) {
  std::string names;
  for (const Contender& each : report.contenders.present) names += (names.empty() ? "" : " / ") + each.name;
  std::string out = fmt::format("| {} | CPU µs/op | ops/s | p50 µs | p99 µs | further |\n", names) +
                    "| --- | ---: | ---: | ---: | ---: | --- |\n";
  for (const RowResult& each : report.rows) {
    out += fmt::format("| {} |", each.row.name);
    for (const Figure& figure : {kCpu, kThroughput, kP50, kP99}) {
      out += fmt::format(" {} |", figure_cell(report, each, figure));
    }
    out += fmt::format(" {} |\n", further_figures(report, each));
  }
  return out;
}

std::string preface(const Report& report) {
  std::string who;
  for (const Contender& each : report.contenders.present) {
    who += fmt::format("{}{} {}", who.empty() ? "" : ", ", each.name, each.version);
  }
  std::string out = fmt::format(
      "{}: {} rounds of {:g} s each, all in turn, on {} CPUs that the load generator shares. Median (least–greatest) "
      "of the "
      "rounds' ratios.\n",
      who, report.rounds.rounds, report.duration_s, std::thread::hardware_concurrency());
  for (const std::string& each : report.contenders.left_out) out += each + ".\n";
  if (is_older(version_of(report, kMemcached))) {
    out +=
        "The goals are against memcached 1.6.45. An older one sends every answer of a text pipeline by itself and "
        "costs twice "
        "as much there, so at depth 16 the CPU goals are halved here, and the throughput goals doubled (not those of "
        "the "
        "binary protocol, whose answers it collects).\n";
  }
  return out;
}

// --- JSON

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 3> kNames{"load", "crowded", "idle memory"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames{"not measured", "missed", "met"};
  return kNames[static_cast<size_t>(verdict)];
}

// More digits than a measurement has make a long file.
double rounded(double value) {
  return std::stod(fmt::format("{:.4g}", value));
}

Json ratio_json(const bench::Ratio& ratio) {
  return {{"median", rounded(ratio.median)}, {"min", rounded(ratio.min)}, {"max", rounded(ratio.max)}};
}

Json load_json(const bench::LoadSpec& load) {
  return {{"protocol", load.protocol == bench::Protocol::kText ? "text" : "binary"},
          {"connections", load.connections},
          {"idle_connections", load.idle_connections},
          {"depth", load.depth},
          {"multiget", load.multiget},
          {"value_size", load.value_size},
          {"keys", load.keys},
          {"read_share", load.read_share},
          {"rate", load.rate},
          {"duration_s", load.duration_s}};
}

Json series_json(const RowResult& result) {
  Json out = Json::object();
  for (const Series& each : result.series) {
    Json median = Json::object();
    for (const Figure& figure : {kCpu, kThroughput, kP50, kP99, kKept, kAlone, kMemory, kMemoryOfAll}) {
      if (!each.values(figure).empty()) median[std::string(figure.key)] = rounded(each.median(figure));
    }
    Json rounds = Json::array();
    for (const Figures& round : each.rounds) {
      Json figures = Json::object();
      for (const auto& [key, value] : round) figures[std::string(key)] = rounded(value);
      rounds.push_back(std::move(figures));
    }
    out[each.contender] = {{"median", std::move(median)}, {"rounds", std::move(rounds)}};
  }
  return out;
}

Json ratios_json(const Report& report, const RowResult& result) {
  Json out = Json::object();
  for (const Contender& each : report.contenders.present) {
    if (each.name == kEgret) continue;
    Json ratios = Json::object();
    for (const Figure& figure : {kCpu, kThroughput, kP50, kP99, kKept, kMemory}) {
      const bench::Ratio ratio = ratio_of(result, figure, each.name);
      if (ratio.median != 0) ratios[std::string(figure.key)] = ratio_json(ratio);
    }
    if (!ratios.empty()) out[each.name] = std::move(ratios);
  }
  return out;
}

Json goals_json(const Report& report, const RowResult& result) {
  Json out = Json::array();
  for (const Goal& each : goals_against(result.row, version_of(report, kMemcached))) {
    const bench::Ratio ratio = ratio_of(result, each.figure, each.peer);
    Json goal = {{"figure", each.figure.key},
                 {"against", each.peer},
                 {each.bound == Bound::kAtMost ? "at_most" : "at_least", each.target},
                 {"measured", ratio_json(ratio)},
                 {"verdict", verdict_name(judge(each, ratio))}};
    if (each.later != 0) {
      goal["later"] = each.later;
      goal["later_verdict"] = verdict_name(judge(later_of(each), ratio));
    }
    out.push_back(std::move(goal));
  }
  return out;
}

Json sweep_json(const SweepResult& sweep) {
  Json points = Json::array();
  for (const SweepPoint& each : sweep.points) {
    points.push_back({{"connections", each.connections}, {"contenders", series_json(each.result)}});
  }
  return {{"name", sweep.sweep.name}, {"load", load_json(sweep.sweep.load)}, {"points", std::move(points)}};
}

}  // namespace

uint64_t Report::errors() const {
  uint64_t sum = 0;
  for (const RowResult& each : rows) sum += each.errors;
  for (const SweepResult& each : sweeps) sum += each.errors();
  return sum;
}

Verdict judge(const Goal& goal, const bench::Ratio& ratio) {
  if (ratio.median == 0) return Verdict::kNotMeasured;
  const bool met = goal.bound == Bound::kAtMost ? ratio.median <= goal.target : ratio.median >= goal.target;
  return met ? Verdict::kMet : Verdict::kMissed;
}

std::string to_markdown(const Report& report) {
  return preface(report) + "\n" + goals_table(report) + "\n" + figures_table(report);
}

std::string to_json(const Report& report) {
  Json out = {{"tool", "egret-bench compare"}};
  out["contenders"] = Json::array();
  for (const Contender& each : report.contenders.present) {
    out["contenders"].push_back({{"name", each.name}, {"version", each.version}});
  }
  out["left_out"] = report.contenders.left_out;
  out["rounds"] = report.rounds.rounds;
  out["duration_s"] = report.duration_s;
  out["cpus"] = std::thread::hardware_concurrency();
  out["depth_16_goals_halved"] = is_older(version_of(report, kMemcached));
  out["rows"] = Json::array();
  for (const RowResult& each : report.rows) {
    out["rows"].push_back({{"name", each.row.name},
                           {"kind", kind_name(each.row.kind)},
                           {"socket", each.row.door == bench::Door::kTcp ? "tcp" : "unix"},
                           {"load", load_json(each.row.load)},
                           {"discarded", each.discarded},
                           {"contenders", series_json(each)},
                           {"ratios", ratios_json(report, each)},
                           {"goals", goals_json(report, each)},
                           {"errors", each.errors},
                           {"first_error", each.first_error}});
  }
  out["sweeps"] = Json::array();
  for (const SweepResult& each : report.sweeps) out["sweeps"].push_back(sweep_json(each));
  out["errors"] = report.errors();
  return out.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace egret::bench_compare
