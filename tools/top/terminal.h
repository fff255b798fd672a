// The terminal while egret-top has it: ncurses draws, keys come in, and the terminal is as it was at every end: the
// destructor's, and that by a signal that nobody can go on after. One object at a time, one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "top/screen.h"

namespace egret::top {

class Terminal {
 public:
  // Null: stdin or stdout is no terminal, or one of which nothing is known.
  static std::unique_ptr<Terminal> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t width() const;
  size_t height() const;
  bool has_blocks() const;  // its characters are UTF-8
  bool is_gone() const;     // hung up
  // After SIGWINCH.
  void resize();
  // The head, then of the body what `scroll` leaves.
  void draw(const Line& head, const std::vector<Line>& body, size_t scroll);
  // Nothing: no key waits.
  std::optional<Key> key();

 private:
  Terminal() = default;
};

}  // namespace egret::top
