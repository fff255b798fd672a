#include "top/text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace egret::top {

namespace {

// Three digits, without zeros at the end of a fraction.
std::string digits(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 0.001) return value < 0 ? "-0" : "<0.001";
  std::string text = fmt::format("{:.{}f}", value, size < 1 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

template <size_t N>
std::string scaled(double value, double base, const std::string_view (&units)[N]) {
  size_t unit = 0;
  while (std::abs(value) >= base * 0.9995 && unit + 1 < N) {
    value /= base;
    ++unit;
  }
  if (std::abs(value) >= 1e6) return fmt::format("{:.1e}{}", value, units[unit]);
  return digits(value) + std::string(units[unit]);
}

}  // namespace

std::string count_text(double value) {
  static constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  return scaled(value, 1000, kUnits);
}

std::string bytes_text(double value) {
  static constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
  return scaled(value, 1024, kUnits);
}

std::string whole_text(double value) {
  if (std::abs(value) >= 1e9) return count_text(value);
  std::string text = fmt::format("{:.0f}", std::abs(value));
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return (std::round(value) < 0 ? "-" : "") + text;
}

std::string share_text(double value) {
  const double percent = value * 100;
  if (percent < 100 && percent > 99.95) return ">99.9%";
  if (percent > 0 && percent < 0.1) return "<0.1%";
  if (percent == 0 || percent == 100 || percent >= 1e6) return count_text(percent) + "%";
  return fmt::format("{:.1f}%", percent);
}

std::string seconds_text(double value) {
  if (value == 0) return "0";
  if (value < 0.9995e-3) return digits(value * 1e6) + "us";
  if (value < 0.9995) return digits(value * 1e3) + "ms";
  return digits(value) + "s";
}

std::string age_text(double seconds) {
  struct Part {
    uint64_t size;
    const char* name;
  };
  static constexpr Part kParts[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  if (!(seconds < 1e15)) return "-";
  const auto whole = static_cast<uint64_t>(std::max(0.0, seconds));
  const auto* first = std::ranges::find_if(kParts, [&](const Part& part) { return whole >= part.size; });
  if (first == std::end(kParts)) return "0s";
  std::string text = fmt::format("{}{}", whole / first->size, first->name);
  const auto* next = first + 1;
  const uint64_t rest = next == std::end(kParts) ? 0 : whole % first->size / next->size;
  return rest == 0 ? text : fmt::format("{} {}{}", text, rest, next->name);
}

std::string value_text(const FigureRow& row, const std::optional<Value>& value, bool rate) {
  if (!value) return "-";
  const std::string suffix = rate && row.how == How::kRate && row.unit != Unit::kShare ? "/s" : "";
  switch (row.unit) {
    case Unit::kCount:
      return count_text(value->number) + suffix;
    case Unit::kWhole:
      return whole_text(value->number) + suffix;
    case Unit::kBytes:
      return bytes_text(value->number) + suffix;
    case Unit::kShare:
      return share_text(value->number);
    case Unit::kSeconds:
      return (value->beyond ? ">" : "") + seconds_text(value->number);
  }
  return "-";
}

}  // namespace egret::top
