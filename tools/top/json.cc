#include "top/json.h"

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace egret::top {

namespace {

using Json = nlohmann::ordered_json;

// Whole numbers are written without a fraction.
Json number_json(double value) {
  constexpr double kMostExact = 1LL << 53;
  if (std::trunc(value) == value && std::abs(value) <= kMostExact) return static_cast<int64_t>(value);
  return value;
}

Json value_json(const FigureRow& row, const std::optional<Value>& value) {
  if (!value) return nullptr;
  if (row.how != How::kQuantile) return number_json(value->number);
  return {{"seconds", value->number}, {"beyond", value->beyond}};
}

void add_values(Json& to, std::span<const FigureRow> table, const Values& values) {
  for (size_t row = 0; row < table.size(); ++row)
    to[std::string(table[row].name)] = value_json(table[row], values[row]);
}

Json parts_json(std::span<const FigureRow> table, const std::vector<PartFigures>& parts, const char* name) {
  Json all = Json::array();
  for (const PartFigures& part : parts) {
    Json one = {{name, part.name}};
    if (!part.address.empty()) one["address"] = part.address;
    if (!part.lane.empty()) one["lane"] = part.lane;
    add_values(one, table, part.values);
    all.push_back(std::move(one));
  }
  return all;
}

Json daemon_json(const Daemon& daemon) {
  Json json = {{"address", daemon.address()}, {"up", daemon.is_up()}};
  if (!daemon.is_up()) {
    json["error"] = daemon.why_down();
    return json;
  }
  const Figures& figures = daemon.figures();
  const bool is_proxy = figures.kind == Kind::kProxy;
  json["kind"] = is_proxy ? "proxy" : "backend";
  json["version"] = figures.version.empty() ? Json() : Json(figures.version);
  json["started"] = figures.started ? number_json(*figures.started) : Json();
  json["restarted"] = figures.has_restarted;
  add_values(json, table_of(figures.kind), figures.values);
  json[is_proxy ? "backends" : "partitions"] =
      parts_json(part_table_of(figures.kind), figures.parts, is_proxy ? "name" : "partition");
  if (is_proxy) json["lanes_of_backends"] = parts_json(lane_table(), figures.lanes, "backend");
  return json;
}

}  // namespace

std::string to_json(std::span<const Daemon* const> daemons, double unix_time_s) {
  Json json = {{"time", std::round(unix_time_s * 1000) / 1000}, {"daemons", Json::array()}};
  for (const Daemon* daemon : daemons) json["daemons"].push_back(daemon_json(*daemon));
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace egret::top
