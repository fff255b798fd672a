// Any two answers to egret-top, separated by a NUL: never a crash, and no control sequences in the screen, the lines or
// the JSON.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "top/daemon.h"
#include "top/json.h"
#include "top/screen.h"

namespace {

using namespace egret::top;

void check_printable(std::string_view text) {
  for (const char c : text) EGRET_CHECK(c >= ' ' && c <= '~');
}

void check_figures(const Figures& figures) {
  const auto all_finite = [](const Values& values) {
    for (const auto& value : values) EGRET_CHECK(!value || !std::isnan(value->number));
  };
  all_finite(figures.values);
  for (const PartFigures& part : figures.parts) all_finite(part.values);
  for (const PartFigures& lane : figures.lanes) all_finite(lane.values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t half = input.find('\0');
  Daemon daemon("here");
  daemon.take(input.substr(0, half), 1);
  if (half != std::string_view::npos) daemon.take(input.substr(half + 1), 2);
  if (daemon.is_up()) check_figures(daemon.figures());
  const Frame frame{.now_s = 3, .unix_time_s = 1e9, .clock = "now", .interval = "1s"};
  const Daemon* daemons[] = {&daemon};
  for (const bool lanes : {false, true}) {
    Choices choices;
    choices.shows_lanes = lanes;
    choices.sort_column = size % 16;
    for (const Line& line : body_lines(daemons, frame, choices, 120)) {
      EGRET_CHECK(width_of(line) <= 120);
      check_printable(text_of(line));
    }
  }
  check_printable(plain_line(daemon, frame));
  for (const char c : to_json(daemons, 1)) EGRET_CHECK(c >= ' ' || c < 0);
  return 0;
}
