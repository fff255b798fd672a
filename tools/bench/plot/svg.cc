#include "bench_plot/svg.h"

#include <array>

#include <fmt/format.h>

namespace egret::bench_plot {
namespace {

// The contenders' colours, told apart by those who do not see red or green.
constexpr std::array<Colour, 6> kColours{"#0969da", "#7d8590", "#d1670e", "#8250df", "#1a7f64", "#bf3989"};
constexpr std::string_view kFonts = "'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif";

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

std::string attributes_of(const Stroke& stroke) {
  std::string out = fmt::format("stroke=\"{}\" stroke-width=\"{:g}\"", stroke.colour, stroke.width);
  if (!stroke.dashes.empty()) out += fmt::format(" stroke-dasharray=\"{}\"", stroke.dashes);
  return out;
}

std::string attributes_of(const TextStyle& style) {
  return fmt::format("fill=\"{}\" font-size=\"{:g}\" text-anchor=\"{}\"{}", style.colour, style.size,
                     kAnchors[static_cast<size_t>(style.anchor)], style.is_bold ? " font-weight=\"bold\"" : "");
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : out_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
          "font-family=\"{2}\" role=\"img\">\n<title>{3}</title>\n<desc>{4}</desc>\n",
          width, height, kFonts, escaped(title), escaped(description))) {
  rect(0, 0, width, height, kWhite);
}

void Svg::begin_group(std::string_view classes, std::string_view title) {
  out_ += fmt::format("<g class=\"{}\">", escaped(classes));
  out_ += title.empty() ? "\n" : fmt::format("<title>{}</title>\n", escaped(title));
}

void Svg::end_group() {
  out_ += "</g>\n";
}

void Svg::rect(double x, double y, double width, double height, Colour fill) {
  out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y, width,
                      height, fill);
}

void Svg::line(double x1, double y1, double x2, double y2, const Stroke& stroke) {
  out_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2,
                      attributes_of(stroke));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke) {
  out_ += "<polyline points=\"";
  for (const auto& [x, y] : points) out_ += fmt::format("{:.2f},{:.2f} ", x, y);
  out_ += fmt::format("\" fill=\"none\" {}/>\n", attributes_of(stroke));
}

void Svg::circle(double x, double y, double radius, Colour fill, const Stroke& stroke) {
  out_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\" fill=\"{}\" {}/>\n", x, y, radius, fill,
                      attributes_of(stroke));
}

void Svg::text(double x, double y, std::string_view words, const TextStyle& style) {
  out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, attributes_of(style), escaped(words));
}

void Svg::upright_text(double x, double y, std::string_view words, const TextStyle& style) {
  TextStyle centred = style;
  centred.anchor = Anchor::kMiddle;
  out_ += fmt::format("<text transform=\"translate({:.2f} {:.2f}) rotate(-90)\" {}>{}</text>\n", x, y,
                      attributes_of(centred), escaped(words));
}

std::string Svg::finish() const {
  return out_ + "</svg>\n";
}

Colour colour_of(size_t contender) {
  return kColours[contender % kColours.size()];
}

std::string colour_class(size_t contender) {
  return fmt::format("c{}", contender % kColours.size());
}

std::string number_text(double value) {
  if (value < 10) return fmt::format("{:.2f}", value);
  return value < 100 ? fmt::format("{:.1f}", value) : with_thousands(value);
}

std::string tick_text(double value) {
  return value < 1000 ? fmt::format("{:.4g}", value) : with_thousands(value);
}

}  // namespace egret::bench_plot
