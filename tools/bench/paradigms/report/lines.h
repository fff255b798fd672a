// A picture of lines over two axes, each named at its right end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace egret::bench_paradigms {

struct NamedLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending x, both above 0
};
struct LineChart {
  std::string title, subtitle;
  std::string x_name, y_name;
  bool is_x_logarithmic = false;
  bool is_y_logarithmic = false;
  std::vector<NamedLine> lines;  // one at least, with a point each
};

std::string draw_lines(const LineChart& chart);

}  // namespace egret::bench_paradigms
