// An SVG picture, put together piece by piece. Text is escaped here. Every piece has its colours as plain attributes
// (fill, stroke) and the picture an opaque white background, so any viewer shows it alike on a light and on a dark page:
// not every viewer knows style sheets, and CSS variables are drawn black by some (librsvg).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace egret::bench_plot {

using Colour = std::string_view;  // "#rrggbb"

inline constexpr Colour kWhite = "#ffffff";
inline constexpr Colour kInk = "#1f2328";
inline constexpr Colour kGray = "#59636e";
inline constexpr Colour kGridGray = "#d8dee4";

// How a line or an outline is drawn. `dashes`: lengths of dashes and gaps; empty: a solid line.
struct Stroke {
  Colour colour = kInk;
  double width = 1;
  std::string_view dashes = {};
};
inline constexpr Stroke kGridStroke{kGridGray, 1};
inline constexpr Stroke kAxisStroke{kGray, 1};

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

struct TextStyle {
  Colour colour = kInk;
  double size = 13;
  bool is_bold = false;
  Anchor anchor = Anchor::kStart;
};
inline constexpr TextStyle kFaintText{kGray, 12};

class Svg {
 public:
  // A picture of so many pixels. `title` and `description` are for those who do not see it.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // A group of pieces that belong together, named by its classes; `title` is shown when the pointer is on it.
  void begin_group(std::string_view classes, std::string_view title = {});
  void end_group();

  void rect(double x, double y, double width, double height, Colour fill);
  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke);
  void circle(double x, double y, double radius, Colour fill, const Stroke& stroke);
  void text(double x, double y, std::string_view words, const TextStyle& style);
  // Turned to be read from below to above, centred.
  void upright_text(double x, double y, std::string_view words, const TextStyle& style);

  std::string finish() const;

 private:
  std::string out_;
};

// The colour of a contender: there are six, then they begin again. `colour_class` is its name in a group's classes.
Colour colour_of(size_t contender);
std::string colour_class(size_t contender);

// "7.20", "42.0", "123,456".
std::string number_text(double value);
// As short as a tick can be: "0.5", "20,000".
std::string tick_text(double value);

}  // namespace egret::bench_plot
