#include <algorithm>

#include <fmt/format.h>

#include "bench_plot/charts.h"
#include "bench_plot/legend.h"
#include "bench_plot/scale.h"
#include "bench_plot/svg.h"

namespace egret::bench_plot {
namespace {

constexpr double kWidth = 900;
constexpr double kLeft = 96;
constexpr double kRight = 850;
constexpr double kPlotHeight = 330;
constexpr double kPanelTitle = 34;
constexpr double kPanelHeight = kPanelTitle + kPlotHeight + 62;  // with ticks and the axis's name below

struct Quantile {
  std::string_view name;  // also its class
  double Point::*figure;
  std::string_view dashes;  // of its line
  bool is_filled;           // its points
};
constexpr Quantile kP50{"p50", &Point::p50_us, "", true};
constexpr Quantile kP99{"p99", &Point::p99_us, "6 4", false};

Stroke curve_of(const Quantile& quantile, size_t contender) {
  return {colour_of(contender), 2, quantile.dashes};
}

struct Axes {
  Scale x;
  Scale y;
};

Axes axes_of(const Panel& panel, double top) {
  double ops = 0;
  double least = panel.lines.front().points.front().p50_us;
  double greatest = 0;
  for (const Line& line : panel.lines) {
    for (const Point& each : line.points) {
      ops = std::max(ops, each.ops_per_s);
      least = std::min({least, each.p50_us, each.p99_us});
      greatest = std::max({greatest, each.p50_us, each.p99_us});
    }
  }
  return {Scale::linear(ops, kLeft, kRight), Scale::logarithmic(least, greatest, top + kPlotHeight, top)};
}

void draw_axes(Svg& svg, const Axes& axes, double top) {
  const double bottom = top + kPlotHeight;
  svg.begin_group("x-axis");
  for (const double tick : axes.x.ticks()) {
    svg.line(axes.x.at(tick), top, axes.x.at(tick), bottom, kGridStroke);
    svg.text(axes.x.at(tick), bottom + 18, tick_text(tick), {.anchor = Anchor::kMiddle});
  }
  svg.end_group();
  svg.begin_group("y-axis");
  for (const double tick : axes.y.ticks()) {
    svg.line(kLeft, axes.y.at(tick), kRight, axes.y.at(tick), kGridStroke);
    svg.text(kLeft - 8, axes.y.at(tick) + 4, tick_text(tick), {.anchor = Anchor::kEnd});
  }
  svg.end_group();
  svg.line(kLeft, top, kLeft, bottom, kAxisStroke);
  svg.line(kLeft, bottom, kRight, bottom, kAxisStroke);
  svg.text((kLeft + kRight) / 2, bottom + 38, "throughput, ops/s", {kGray, 12, false, Anchor::kMiddle});
  svg.upright_text(kMargin + 8, top + kPlotHeight / 2, "latency of a request, µs (logarithmic)", kFaintText);
}

void draw_curve(Svg& svg, const Contender& contender, const Line& line, const Quantile& quantile, const Axes& axes) {
  const std::string name(quantile.name);
  const Colour colour = colour_of(line.contender);
  svg.begin_group("line " + name + " " + colour_class(line.contender));
  std::vector<std::pair<double, double>> places;
  for (const Point& each : line.points)
    places.emplace_back(axes.x.at(each.ops_per_s), axes.y.at(each.*quantile.figure));
  svg.polyline(places, curve_of(quantile, line.contender));
  for (size_t i = 0; i < places.size(); ++i) {
    const Point& point = line.points[i];
    svg.begin_group("point",
                    fmt::format("{}, {:g} connections: {} ops/s, {} {} µs", contender.title(), point.connections,
                                number_text(point.ops_per_s), name, number_text(point.*quantile.figure)));
    svg.circle(places[i].first, places[i].second, 3.2, quantile.is_filled ? colour : kWhite, {colour, 1.6});
    svg.end_group();
  }
  svg.end_group();
}

void draw_panel(Svg& svg, const Data& data, const Panel& panel, double y) {
  const double top = y + kPanelTitle;
  svg.begin_group("sweep");
  svg.text(kLeft, y + 22, panel.sweep, {.size = 14, .is_bold = true});
  const Axes axes = axes_of(panel, top);
  draw_axes(svg, axes, top);
  for (const Line& line : panel.lines) {
    for (const Quantile& quantile : {kP99, kP50})
      draw_curve(svg, data.contenders[line.contender], line, quantile, axes);
  }
  svg.end_group();
}

// Which of a contender's two lines is which.
void draw_key(Svg& svg) {
  constexpr double kX = kRight - 190;
  svg.begin_group("key");
  svg.line(kX, 72, kX + 30, 72, {kGray, 2, kP50.dashes});
  svg.text(kX + 38, 77, kP50.name, {});
  svg.line(kX + 90, 72, kX + 120, 72, {kGray, 2, kP99.dashes});
  svg.text(kX + 128, 77, kP99.name, {});
  svg.end_group();
}

}  // namespace

std::string draw_throughput_latency(const Data& data) {
  const std::string title = "Latency against throughput";
  const std::string subtitle =
      "Each point has more connections than the one before, all of them always busy. " + data.conditions;
  Svg svg(kWidth, kHeaderHeight + kPanelHeight * static_cast<double>(data.panels.size()), title, subtitle);
  draw_header(svg, data, title, subtitle);
  draw_key(svg);
  double y = kHeaderHeight;
  for (const Panel& each : data.panels) {
    draw_panel(svg, data, each, y);
    y += kPanelHeight;
  }
  return svg.finish();
}

}  // namespace egret::bench_plot
