// The report as JSON: every round, the ratios, the verdicts.
#include <array>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_compare/report.h"

namespace egret::bench_compare {
namespace {

using bench::Sending;
using Json = nlohmann::ordered_json;

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 5> kNames{"load", "crowded", "idle memory", "library", "preloaded"};
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

Json series_json(const RowResult& result, Sending sending) {
  Json out = Json::object();
  for (const Series& each : result.series) {
    if (each.sending != sending) continue;
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

Json ratios_json(const Report& report, const RowResult& result, Sending sending) {
  Json out = Json::object();
  for (const Contender& each : report.contenders.present) {
    if (each.name == kEgret) continue;
    Json ratios = Json::object();
    for (const Figure& figure : {kCpu, kThroughput, kP50, kP99, kKept, kMemory}) {
      const bench::Ratio ratio = ratio_of(result, figure, each.name, sending);
      if (ratio.median != 0) ratios[std::string(figure.key)] = ratio_json(ratio);
    }
    if (!ratios.empty()) out[each.name] = std::move(ratios);
  }
  return out;
}

std::string_view change_name(Change change) {
  constexpr std::array<std::string_view, 4> kNames{"not measured", "within the spread", "better", "worse"};
  return kNames[static_cast<size_t>(change)];
}

Json sendings_json(const Report& report, const RowResult& result) {
  Json out = Json::object();
  for (const Sending sending : result.row.sendings) {
    Json& each = out[std::string(name_of(sending))];
    each = {{"contenders", series_json(result, sending)}, {"ratios", ratios_json(report, result, sending)}};
    for (const BesideBase& beside : kBesideBase) {
      if (!report.has(beside.base)) continue;
      const char* const key = beside.subject == kEgret ? "beside_base" : "one_process_beside_base";
      each[key] = change_name(change_of(result, beside, sending));
    }
  }
  return out;
}

Json goals_json(const Report& report, const RowResult& result, std::string_view subject) {
  Json out = Json::array();
  for (const Goal& each : goals_against(result.row, report.version_of(kMemcached))) {
    if (each.subject != subject) continue;
    const Worse worse = worse_of(result, each);
    Json goal = {{"figure", each.figure.key},
                 {"against", each.peer},
                 {each.bound == Bound::kAtMost ? "at_most" : "at_least", each.target},
                 {"sending", name_of(worse.sending)},
                 {"measured", ratio_json(worse.ratio)},
                 {"verdict", verdict_name(judge(each, worse.ratio))}};
    if (each.later != 0) {
      goal["later"] = each.later;
      goal["later_verdict"] = verdict_name(judge(later_of(each), worse.ratio));
    }
    out.push_back(std::move(goal));
  }
  return out;
}

Json sweep_json(const SweepResult& sweep) {
  Json points = Json::array();
  for (const SweepPoint& each : sweep.points) {
    points.push_back(
        {{"connections", each.connections}, {"contenders", series_json(each.result, sweep.sweep.load.sending)}});
  }
  return {{"name", sweep.sweep.name}, {"load", load_json(sweep.sweep.load)}, {"points", std::move(points)}};
}

}  // namespace

std::string to_json(const Report& report) {
  Json out = {{"tool", "egret-bench compare"}};
  out["contenders"] = Json::array();
  for (const Contender& each : report.contenders.present) {
    out["contenders"].push_back({{"name", each.name}, {"version", each.version}, {"command", each.command}});
  }
  out["between_hosts"] = report.is_between_hosts;
  if (report.is_between_hosts) out["congestion"] = report.congestion;
  out["left_out"] = report.contenders.left_out;
  out["rounds"] = report.rounds.rounds;
  out["duration_s"] = report.duration_s;
  out["cpus"] = std::thread::hardware_concurrency();
  out["depth_16_goals_halved"] = is_older(report.version_of(kMemcached));
  out["rows"] = Json::array();
  for (const RowResult& each : report.rows) {
    out["rows"].push_back({{"name", each.row.name},
                           {"kind", kind_name(each.row.kind)},
                           {"socket", each.row.socket_kind == bench::SocketKind::kTcp ? "tcp" : "unix"},
                           {"load", load_json(each.row.load)},
                           {"discarded", each.discarded},
                           {"sendings", sendings_json(report, each)},
                           {"goals", goals_json(report, each, kEgret)},
                           {"errors", each.errors},
                           {"first_error", each.first_error}});
    if (report.has(kOneProcess)) out["rows"].back()["one_process_goals"] = goals_json(report, each, kOneProcess);
  }
  out["sweeps"] = Json::array();
  for (const SweepResult& each : report.sweeps) out["sweeps"].push_back(sweep_json(each));
  out["errors"] = report.errors();
  return out.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace egret::bench_compare
