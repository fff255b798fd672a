#include "top/json.h"

#include <cstdint>

#include <fmt/format.h>

namespace egret::top {

namespace {

// Bytes of the UTF-8 sequence that `text` begins with, without surrogates and overlong forms; 0: it begins with none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  for (size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

std::string number_text(double value) {
  return fmt::format("{}", value);  // finite, and read back exactly
}

std::string value_json(const FigureRow& row, const std::optional<Value>& value) {
  if (!value) return "null";
  if (row.how != How::kQuantile) return number_text(value->number);
  return fmt::format(R"({{"seconds": {}, "beyond": {}}})", number_text(value->number), value->beyond);
}

std::string values_json(std::span<const FigureRow> table, const Values& values) {
  std::string json;
  for (size_t row = 0; row < table.size(); ++row) {
    json += fmt::format("{}{}: {}", row == 0 ? "" : ", ", json_string(table[row].name),
                        value_json(table[row], values[row]));
  }
  return json;
}

std::string parts_json(std::span<const FigureRow> table, const std::vector<PartFigures>& parts, std::string_view name) {
  std::string json;
  for (const PartFigures& part : parts) {
    const std::string address = part.address.empty() ? "" : fmt::format("\"address\": {}, ", json_string(part.address));
    const std::string lane = part.lane.empty() ? "" : fmt::format("\"lane\": {}, ", json_string(part.lane));
    json += fmt::format("{}{{{}: {}, {}{}{}}}", json.empty() ? "" : ", ", json_string(name), json_string(part.name),
                        address, lane, values_json(table, part.values));
  }
  return "[" + json + "]";
}

std::string daemon_json(const Daemon& daemon) {
  std::string json = fmt::format(R"("address": {}, "up": {})", json_string(daemon.address()), daemon.is_up());
  if (!daemon.is_up()) return json + ", \"error\": " + json_string(daemon.why_down());
  const Figures& figures = daemon.figures();
  const bool is_proxy = figures.kind == Kind::kProxy;
  json += fmt::format(R"(, "kind": "{}", "version": {}, "started": {}, "restarted": {}, )",
                      is_proxy ? "proxy" : "backend", figures.version.empty() ? "null" : json_string(figures.version),
                      figures.started ? number_text(*figures.started) : "null", figures.has_restarted);
  json += values_json(table_of(figures.kind), figures.values);
  json += is_proxy ? ", \"backends\": " : ", \"partitions\": ";
  json += parts_json(part_table_of(figures.kind), figures.parts, is_proxy ? "name" : "partition");
  if (is_proxy) json += ", \"lanes_of_backends\": " + parts_json(lane_table(), figures.lanes, "backend");
  return json;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', text[0]};
    } else if (c < 0x20 || c == 0x7F) {
      json += fmt::format("\\u{:04x}", c);
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return json + "\"";
}

std::string to_json(std::span<const Daemon* const> daemons, double unix_time_s) {
  std::string json;
  for (const Daemon* daemon : daemons) json += fmt::format("{}{{{}}}", json.empty() ? "" : ", ", daemon_json(*daemon));
  return fmt::format(R"({{"time": {:.3f}, "daemons": [{}]}})", unix_time_s, json);
}

}  // namespace egret::top
