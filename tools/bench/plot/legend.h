// What both pictures begin with: title, conditions, and who has which colour.
#pragma once

#include <string_view>

#include "bench_plot/data.h"
#include "bench_plot/svg.h"

namespace egret::bench_plot {

inline constexpr double kHeaderHeight = 92;  // pixels that it takes
inline constexpr double kMargin = 24;

void draw_header(Svg& svg, const Data& data, std::string_view title, std::string_view subtitle);

}  // namespace egret::bench_plot
