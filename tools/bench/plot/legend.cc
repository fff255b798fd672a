#include "bench_plot/legend.h"

namespace egret::bench_plot {
namespace {

constexpr double kSwatch = 12;
constexpr double kCharacter = 7.2;  // how wide one is about

}  // namespace

void draw_header(Svg& svg, const Data& data, std::string_view title, std::string_view subtitle) {
  svg.text(kMargin, 32, title, {.size = 18, .is_bold = true});
  svg.text(kMargin, 52, subtitle, kFaintText);
  double x = kMargin;
  for (size_t i = 0; i < data.contenders.size(); ++i) {
    const std::string name = data.contenders[i].title();
    svg.begin_group("legend " + colour_class(i));
    svg.rect(x, 66, kSwatch, kSwatch, colour_of(i));
    svg.text(x + kSwatch + 6, 77, name, {});
    svg.end_group();
    x += kSwatch + 30 + kCharacter * static_cast<double>(name.size());
  }
}

}  // namespace egret::bench_plot
