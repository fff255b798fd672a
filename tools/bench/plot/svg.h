// An SVG picture put together piece by piece. What is written is escaped here; what the pieces look like, in a light
// and in a dark surrounding, is said once, by classes, in the picture's own style sheet.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace egret::bench_plot {

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

class Svg {
 public:
  // A plate of so many pixels. `title` and `description` are for those who do not see it.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // A group of pieces that belong together; `title` is shown when the pointer is on it.
  void begin_group(std::string_view classes, std::string_view title = {});
  void end_group();

  void rect(double x, double y, double width, double height, std::string_view classes);
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes);
  void circle(double x, double y, double radius, std::string_view classes);
  void text(double x, double y, std::string_view words, std::string_view classes, Anchor anchor = Anchor::kStart);
  // Turned to be read from below to above.
  void upright_text(double x, double y, std::string_view words, std::string_view classes);

  std::string finish() const;

 private:
  std::string out_;
};

// The class that gives a contender its colour: there are colours for six, then they begin again.
std::string colour_class(size_t contender);

// "7.20", "42.0", "123,456".
std::string number_text(double value);
// As short as a tick can be: "0.5", "20,000".
std::string tick_text(double value);

}  // namespace egret::bench_plot
