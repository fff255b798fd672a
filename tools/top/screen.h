// The screen as lines of styled text, and the effect of keys on it. It draws nothing itself, so it is tested without a
// terminal, and `--once --plain` prints the same lines. Makes texts from daemons printable. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "top/daemon.h"

namespace egret::top {

enum class Style : uint8_t { kPlain, kSoft, kBold, kGood, kWarning, kBad, kHeading };

struct Span {
  std::string text;  // one printable line; ASCII except for the block characters of the small plot
  Style style = Style::kPlain;
};
using Line = std::vector<Span>;

size_t width_of(const Line& line);  // in columns
std::string text_of(const Line& line);

enum class Key : uint8_t {
  kQuit,
  kPause,
  kLeft,
  kRight,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kReverse,
  kLanes,
  kHelp,
  kOther
};

// The settings that keys change.
struct Choices {
  bool quits = false;
  bool is_paused = false;
  bool shows_help = false;
  bool shows_lanes = false;  // a proxy's table has a row per lane instead of per backend
  size_t sort_column = 0;    // column that tables are sorted by; 0: the name
  bool is_descending = false;
  size_t scroll = 0;  // number of body lines above the window
};

// Applies a key. `body_lines` and `height` limit the scrolling.
void press(Key key, Choices& choices, size_t body_lines, size_t height);

struct Frame {
  double now_s = 0;         // of the clock that Daemon::take() gets
  double unix_time_s = 0;   // for "up 3h"
  std::string clock{};      // in the head line: "20:43:10"
  std::string interval{};   // "1s"
  bool has_blocks = false;  // the terminal shows UTF-8
};

// The head line, cut to `width` columns.
Line head_line(const Frame& frame, const Choices& choices, size_t width);
// All other lines, each cut to `width` columns, not scrolled.
std::vector<Line> body_lines(std::span<const Daemon* const> daemons, const Frame& frame, const Choices& choices,
                             size_t width);

// One daemon as one line, for logs and pipes.
std::string plain_line(const Daemon& daemon, const Frame& frame);

}  // namespace egret::top
