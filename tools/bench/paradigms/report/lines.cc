#include "bench_paradigms/report/lines.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "bench_plot/scale.h"
#include "bench_plot/svg.h"

namespace egret::bench_paradigms {

namespace {

using bench_plot::Scale;
using bench_plot::Svg;

constexpr double kWidth = 900;
constexpr double kHeight = 560;
constexpr double kLeft = 96;
constexpr double kRight = 730;  // names of lines stand beside it
constexpr double kTop = 80;
constexpr double kBottom = 490;
constexpr double kNameHeight = 14;
constexpr size_t kColours = 6;
// Lines of the same colour differ by their dashes.
constexpr std::array<std::string_view, 4> kDashes{"", "6 4", "2 3", "10 3 2 3"};

struct Axes {
  Scale x, y;
};

Axes axes_of(const LineChart& chart) {
  double least_x = 0, most_x = 0, least_y = 0, most_y = 0;
  for (const NamedLine& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      least_x = least_x == 0 ? x : std::min(least_x, x);
      least_y = least_y == 0 ? y : std::min(least_y, y);
      most_x = std::max(most_x, x);
      most_y = std::max(most_y, y);
    }
  }
  return {chart.is_x_logarithmic ? Scale::logarithmic(least_x, most_x, kLeft, kRight)
                                 : Scale::linear(most_x, kLeft, kRight),
          chart.is_y_logarithmic ? Scale::logarithmic(least_y, most_y, kBottom, kTop)
                                 : Scale::linear(most_y, kBottom, kTop)};
}

void draw_axes(Svg& svg, const LineChart& chart, const Axes& axes) {
  svg.begin_group("axes");
  for (const double tick : axes.x.ticks()) {
    svg.line(axes.x.at(tick), kTop, axes.x.at(tick), kBottom, bench_plot::kGridStroke);
    svg.text(axes.x.at(tick), kBottom + 18, bench_plot::tick_text(tick), {.anchor = bench_plot::Anchor::kMiddle});
  }
  for (const double tick : axes.y.ticks()) {
    svg.line(kLeft, axes.y.at(tick), kRight, axes.y.at(tick), bench_plot::kGridStroke);
    svg.text(kLeft - 8, axes.y.at(tick) + 4, bench_plot::tick_text(tick), {.anchor = bench_plot::Anchor::kEnd});
  }
  svg.line(kLeft, kTop, kLeft, kBottom, bench_plot::kAxisStroke);
  svg.line(kLeft, kBottom, kRight, kBottom, bench_plot::kAxisStroke);
  svg.text((kLeft + kRight) / 2, kBottom + 42, chart.x_name,
           {bench_plot::kGray, 12, false, bench_plot::Anchor::kMiddle});
  svg.upright_text(32, (kTop + kBottom) / 2, chart.y_name, bench_plot::kFaintText);
  svg.end_group();
}

// Where each line's name stands: at its end, but no two on top of each other.
std::vector<double> places_of_names(const LineChart& chart, const Axes& axes) {
  std::vector<size_t> order(chart.lines.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto end_of = [&](size_t i) { return axes.y.at(chart.lines[i].points.back().second); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return end_of(a) < end_of(b); });
  std::vector<double> places(chart.lines.size());
  double next = kTop;
  for (const size_t i : order) {
    places[i] = std::max(next, end_of(i));
    next = places[i] + kNameHeight;
  }
  const double beyond = next - kNameHeight - kBottom;
  if (beyond <= 0) return places;
  // Too low: from below to above again.
  double last = kBottom;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    places[*at] = std::min(places[*at], last);
    last = places[*at] - kNameHeight;
  }
  return places;
}

void draw_line(Svg& svg, const NamedLine& line, size_t index, double name_at, const Axes& axes) {
  const bench_plot::Colour colour = bench_plot::colour_of(index);
  svg.begin_group("line", line.name);
  std::vector<std::pair<double, double>> places;
  for (const auto& [x, y] : line.points) places.emplace_back(axes.x.at(x), axes.y.at(y));
  svg.polyline(places, {colour, 2, kDashes[index / kColours % kDashes.size()]});
  for (size_t i = 0; i < places.size(); ++i) {
    svg.begin_group("point", fmt::format("{}: {}, {}", line.name, bench_plot::number_text(line.points[i].first),
                                         bench_plot::number_text(line.points[i].second)));
    svg.circle(places[i].first, places[i].second, 3, colour, {colour, 1});
    svg.end_group();
  }
  svg.line(places.back().first, places.back().second, kRight + 12, name_at, {colour, .6, "1 2"});
  svg.text(kRight + 16, name_at + 4, line.name, {colour, 12});
  svg.end_group();
}

}  // namespace

std::string draw_lines(const LineChart& chart) {
  Svg svg(kWidth, kHeight, chart.title, chart.subtitle);
  svg.text(24, 32, chart.title, {.size = 18, .is_bold = true});
  svg.text(24, 54, chart.subtitle, bench_plot::kFaintText);
  const Axes axes = axes_of(chart);
  draw_axes(svg, chart, axes);
  const std::vector<double> names = places_of_names(chart, axes);
  for (size_t i = 0; i < chart.lines.size(); ++i) draw_line(svg, chart.lines[i], i, names[i], axes);
  return svg.finish();
}

}  // namespace egret::bench_paradigms
