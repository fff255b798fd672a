#include "bench_plot/data.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace egret::bench_plot {
namespace {

using Json = nlohmann::ordered_json;

bool can_be_drawn(double value) {
  return std::isfinite(value) && value > 0;
}

// 0 if it is not there.
double figure_of(const Json& figures, const char* name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->get<double>();
}

std::optional<Bar> read_bar(const Json& measured, size_t contender) {
  constexpr const char* kCpu = "cpu_us_per_op";
  Bar bar{contender, figure_of(measured.at("median"), kCpu), 0, 0};
  std::vector<double> rounds;
  for (const Json& round : measured.at("rounds")) rounds.push_back(figure_of(round, kCpu));
  if (rounds.empty() || !can_be_drawn(bar.median) || !std::all_of(rounds.begin(), rounds.end(), can_be_drawn))
    return {};
  const auto [least, greatest] = std::minmax_element(rounds.begin(), rounds.end());
  bar.least = *least;
  bar.greatest = *greatest;
  return bar;
}

Group read_group(const std::string& name, const Json& series, const std::vector<Contender>& contenders) {
  Group group{name, {}};
  for (size_t i = 0; i < contenders.size(); ++i) {
    const auto measured = series.find(contenders[i].name);
    if (measured == series.end()) continue;
    if (const auto bar = read_bar(*measured, i)) group.bars.push_back(*bar);
  }
  return group;
}

// A group for each way of sending, which is named where there are several.
void read_row(const Json& row, Data& data) {
  const Json& sendings = row.at("sendings");
  for (const auto& [sending, measured] : sendings.items()) {
    const std::string name = row.at("name").get<std::string>() + (sendings.size() > 1 ? ", " + sending : "");
    Group group = read_group(name, measured.at("contenders"), data.contenders);
    if (!group.bars.empty()) data.groups.push_back(std::move(group));
  }
}

std::optional<Point> read_point(const Json& point, const std::string& contender) {
  const auto measured = point.at("contenders").find(contender);
  if (measured == point.at("contenders").end()) return {};
  const Json& median = measured->at("median");
  const Point read{figure_of(median, "ops_per_s"), figure_of(median, "p50_us"), figure_of(median, "p99_us"),
                   point.at("connections").get<double>()};
  const bool good = can_be_drawn(read.ops_per_s) && can_be_drawn(read.p50_us) && can_be_drawn(read.p99_us);
  return good ? std::optional(read) : std::nullopt;
}

Panel read_panel(const Json& sweep, const std::vector<Contender>& contenders) {
  Panel panel{sweep.at("name").get<std::string>(), {}};
  for (size_t i = 0; i < contenders.size(); ++i) {
    Line line{i, {}};
    for (const Json& point : sweep.at("points")) {
      if (const auto read = read_point(point, contenders[i].name)) line.points.push_back(*read);
    }
    if (!line.points.empty()) panel.lines.push_back(std::move(line));
  }
  return panel;
}

Data read(const Json& json) {
  Data data;
  for (const Json& each : json.at("contenders")) {
    data.contenders.push_back({each.at("name").get<std::string>(), each.at("version").get<std::string>()});
  }
  data.conditions =
      fmt::format("{} rounds of {:g} s on {} CPUs shared with the load generator", json.at("rounds").get<uint64_t>(),
                  json.at("duration_s").get<double>(), json.at("cpus").get<uint64_t>());
  for (const Json& row : json.at("rows")) read_row(row, data);
  for (const Json& sweep : json.at("sweeps")) {
    Panel panel = read_panel(sweep, data.contenders);
    if (!panel.lines.empty()) data.panels.push_back(std::move(panel));
  }
  return data;
}

}  // namespace

base::Expected<Data> read_data(const std::string& json) {
  try {
    return read(Json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    return base::Status::error(std::string("not the JSON of egret-bench compare: ") + error.what());
  }
}

}  // namespace egret::bench_plot
