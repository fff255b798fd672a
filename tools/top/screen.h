// What the terminal shows, as lines of styled text, and what keys change about it. Draws nothing itself, so that it is
// tested without a terminal, and so that `--once --plain` is the same picture. What daemons wrote is made printable
// here. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "top/daemon.h"

namespace egret::top {

enum class Style : uint8_t { kPlain, kSoft, kBold, kGood, kWarning, kBad, kHeading };

struct Span {
  std::string text;  // one line, printable; ASCII but for the blocks of the small plot
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

// What the keys have chosen.
struct Choices {
  bool quits = false;
  bool is_paused = false;
  bool shows_help = false;
  bool shows_lanes = false;  // of a proxy: a row for each lane rather than each backend
  size_t sort_column = 0;    // of the tables; 0: the name
  bool is_descending = false;
  size_t scroll = 0;  // lines of the body above the window
};

// `body_lines` and `height` bound the scrolling.
void press(Key key, Choices& choices, size_t body_lines, size_t height);

struct Frame {
  double now_s = 0;         // of the daemons' clock
  double unix_time_s = 0;   // for "up 3h"
  std::string clock{};      // what the head says: "20:43:10"
  std::string interval{};   // "1s"
  bool has_blocks = false;  // the terminal shows UTF-8
};

// The head line, cut to `width` columns.
Line head_line(const Frame& frame, const Choices& choices, size_t width);
// All else, each line cut to `width` columns. Not scrolled.
std::vector<Line> body_lines(std::span<const Daemon* const> daemons, const Frame& frame, const Choices& choices,
                             size_t width);

// One daemon as one line, for logs and pipes.
std::string plain_line(const Daemon& daemon, const Frame& frame);

}  // namespace egret::top
