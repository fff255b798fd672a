#include "bench_plot/svg.h"

#include <array>

#include <fmt/format.h>

namespace egret::bench_plot {
namespace {

// Both schemes bring their own plate, so that text is readable whatever is behind the picture. Colours are told apart
// by those who do not see red or green.
constexpr std::string_view kStyle = R"(
  svg { --plate: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d8dee4;
        --c0: #0969da; --c1: #7d8590; --c2: #d1670e; --c3: #8250df; --c4: #1a7f64; --c5: #bf3989;
        font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; }
  @media (prefers-color-scheme: dark) {
    svg { --plate: #0d1117; --ink: #e6edf3; --faint: #9198a1; --grid: #30363d;
          --c0: #58a6ff; --c1: #8b949e; --c2: #f0883e; --c3: #bc8cff; --c4: #3fb6a0; --c5: #f778ba; } }
  .plate { fill: var(--plate); stroke: var(--grid); }
  text { fill: var(--ink); }
  .title { font-size: 18px; font-weight: 600; }
  .panel { font-size: 14px; font-weight: 600; }
  .faint { fill: var(--faint); font-size: 12px; }
  .grid { stroke: var(--grid); stroke-width: 1; }
  .axis { stroke: var(--faint); stroke-width: 1; }
  .base { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3; }
  .whisker { stroke: var(--ink); stroke-width: 1.2; }
  .value { font-size: 11px; paint-order: stroke; stroke: var(--plate); stroke-width: 3px; stroke-linejoin: round; }
  .curve { fill: none; stroke-width: 2; }
  .p99 { stroke-dasharray: 6 4; }
  .c0 { --own: var(--c0); } .c1 { --own: var(--c1); } .c2 { --own: var(--c2); }
  .c3 { --own: var(--c3); } .c4 { --own: var(--c4); } .c5 { --own: var(--c5); }
  .fill { fill: var(--own); }
  .curve, .dot { stroke: var(--own); }
  .dot { fill: var(--own); }
  .dot.p99 { fill: var(--plate); stroke-width: 1.6; stroke-dasharray: none; }
)";
constexpr size_t kColours = 6;

// Nothing but printable text gets in: what XML does not allow becomes a question mark.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char each : text) {
    switch (each) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(each) < 0x20 ? '?' : each;
    }
  }
  return out;
}

constexpr std::array<std::string_view, 3> kAnchors{"start", "middle", "end"};

std::string with_thousands(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : out_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
          "role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n",
          width, height, escaped(title), escaped(description), kStyle)) {
  out_ += fmt::format("<rect class=\"plate\" x=\"0.5\" y=\"0.5\" width=\"{:g}\" height=\"{:g}\" rx=\"6\"/>\n",
                      width - 1, height - 1);
}

void Svg::begin_group(std::string_view classes, std::string_view title) {
  out_ += fmt::format("<g class=\"{}\">", escaped(classes));
  out_ += title.empty() ? "\n" : fmt::format("<title>{}</title>\n", escaped(title));
}

void Svg::end_group() {
  out_ += "</g>\n";
}

void Svg::rect(double x, double y, double width, double height, std::string_view classes) {
  out_ += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
                      escaped(classes), x, y, width, height);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  out_ += fmt::format("<line class=\"{}\" x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\"/>\n",
                      escaped(classes), x1, y1, x2, y2);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
  out_ += fmt::format("<polyline class=\"{}\" points=\"", escaped(classes));
  for (const auto& [x, y] : points) out_ += fmt::format("{:.2f},{:.2f} ", x, y);
  out_ += "\"/>\n";
}

void Svg::circle(double x, double y, double radius, std::string_view classes) {
  out_ +=
      fmt::format("<circle class=\"{}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\"/>\n", escaped(classes), x, y, radius);
}

void Svg::text(double x, double y, std::string_view words, std::string_view classes, Anchor anchor) {
  out_ += fmt::format("<text class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", escaped(classes),
                      x, y, kAnchors[static_cast<size_t>(anchor)], escaped(words));
}

void Svg::upright_text(double x, double y, std::string_view words, std::string_view classes) {
  out_ += fmt::format(
      "<text class=\"{0}\" transform=\"translate({1:.2f} {2:.2f}) rotate(-90)\" text-anchor=\"middle\">{3}"
      "</text>\n",
      escaped(classes), x, y, escaped(words));
}

std::string Svg::finish() const {
  return out_ + "</svg>\n";
}

std::string colour_class(size_t contender) {
  return fmt::format("c{}", contender % kColours);
}

std::string number_text(double value) {
  if (value < 10) return fmt::format("{:.2f}", value);
  return value < 100 ? fmt::format("{:.1f}", value) : with_thousands(value);
}

std::string tick_text(double value) {
  return value < 1000 ? fmt::format("{:.4g}", value) : with_thousands(value);
}

}  // namespace egret::bench_plot
