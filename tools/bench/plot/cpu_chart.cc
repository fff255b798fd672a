#include <algorithm>

#include <fmt/format.h>

#include "bench_plot/charts.h"
#include "bench_plot/legend.h"
#include "bench_plot/scale.h"
#include "bench_plot/svg.h"

namespace egret::bench_plot {
namespace {

constexpr double kWidth = 940;
constexpr double kLeft = 310;   // of the axis
constexpr double kRight = 860;  // beyond it the values of the longest bars
constexpr double kBar = 13;
constexpr double kGap = 12;  // between groups
constexpr double kAxisHeight = 52;
constexpr double kMost = 4;  // times memcached's; longer bars are cut, and say so
constexpr Stroke kWhisker{kInk, 1.2};
constexpr std::string_view kBaseName = "memcached";

bool is_base(const Contender& contender) {
  return contender.name == kBaseName;
}

// The bar that is 1.
const Bar& base_of(const Data& data, const Group& group) {
  const auto found = std::find_if(group.bars.begin(), group.bars.end(),
                                  [&data](const Bar& each) { return is_base(data.contenders[each.contender]); });
  return found == group.bars.end() ? group.bars.front() : *found;
}

std::string axis_name(const Data& data) {
  const bool has_base = std::any_of(data.contenders.begin(), data.contenders.end(), is_base);
  return fmt::format("CPU per op, as a multiple of {}; beside the bars: µs/op",
                     has_base ? std::string(kBaseName) + "'s" : "the first bar");
}

double greatest_ratio(const Data& data) {
  double greatest = 1;
  for (const Group& group : data.groups) {
    for (const Bar& each : group.bars) greatest = std::max(greatest, each.greatest / base_of(data, group).median);
  }
  return std::min(greatest, kMost);
}

double height_of(const Group& group) {
  return kBar * static_cast<double>(group.bars.size()) + kGap;
}

void draw_whisker(Svg& svg, double from, double to, double y) {
  svg.line(from, y, to, y, kWhisker);
  svg.line(from, y - 3, from, y + 3, kWhisker);
  svg.line(to, y - 3, to, y + 3, kWhisker);
}

void draw_bar(Svg& svg, const Contender& contender, const Bar& bar, double base, const Scale& scale, double y) {
  const auto place = [&](double us) { return scale.at(std::min(us / base, scale.high())); };
  const bool is_cut = bar.median / base > scale.high();
  svg.begin_group("bar " + colour_class(bar.contender),
                  fmt::format("{}: {} µs/op ({}–{}), {:.2f} times", contender.title(), number_text(bar.median),
                              number_text(bar.least), number_text(bar.greatest), bar.median / base));
  svg.rect(scale.at(0), y, place(bar.median) - scale.at(0), kBar - 1, colour_of(bar.contender));
  draw_whisker(svg, place(bar.least), place(bar.greatest), y + (kBar - 1) / 2);
  const double label_x = std::max(place(bar.median), place(bar.greatest)) + 6;
  svg.text(label_x, y + kBar - 3, (is_cut ? "▸ " : "") + number_text(bar.median), {.size = 11});
  svg.end_group();
}

void draw_axis(Svg& svg, const Scale& scale, std::string_view name, double top, double bottom) {
  svg.begin_group("x-axis");
  for (const double tick : scale.ticks()) {
    svg.line(scale.at(tick), top, scale.at(tick), bottom, kGridStroke);
    svg.text(scale.at(tick), bottom + 18, tick_text(tick), {.anchor = Anchor::kMiddle});
  }
  svg.end_group();
  svg.text((kLeft + kRight) / 2, bottom + 38, name, {kGray, 12, false, Anchor::kMiddle});
}

}  // namespace

std::string draw_cpu(const Data& data) {
  double bottom = kHeaderHeight + kGap;
  for (const Group& each : data.groups) bottom += height_of(each);
  const std::string title = "CPU per operation";
  const std::string subtitle =
      "All processes of each, summed. " + data.conditions + "; bars: medians, whiskers: least and greatest round";
  Svg svg(kWidth, bottom + kAxisHeight, title, subtitle);
  draw_header(svg, data, title, subtitle);
  const Scale scale = Scale::linear(greatest_ratio(data), kLeft, kRight);
  draw_axis(svg, scale, axis_name(data), kHeaderHeight, bottom);
  svg.line(scale.at(1), kHeaderHeight, scale.at(1), bottom, {kInk, 1, "2 3"});
  double y = kHeaderHeight + kGap;
  for (const Group& group : data.groups) {
    const double bars_height = height_of(group) - kGap;
    svg.begin_group("row");
    svg.text(kLeft - 12, y + bars_height / 2 + 4, group.row, {.anchor = Anchor::kEnd});
    const double base = base_of(data, group).median;
    for (size_t i = 0; i < group.bars.size(); ++i) {
      const Bar& bar = group.bars[i];
      draw_bar(svg, data.contenders[bar.contender], bar, base, scale, y + kBar * static_cast<double>(i));
    }
    svg.end_group();
    y += height_of(group);
  }
  svg.line(scale.at(0), kHeaderHeight, scale.at(0), bottom, kAxisStroke);
  return svg.finish();
}

}  // namespace egret::bench_plot
