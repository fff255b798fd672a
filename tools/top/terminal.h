// The terminal: draws by ncurses and reads keys. The destructor restores the terminal, and so does a handler of fatal
// signals. One object at a time, one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "top/screen.h"

namespace egret::top {

class Terminal {
 public:
  // Null: stdin or stdout is not a terminal, or its type is unknown.
  static std::unique_ptr<Terminal> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t width() const;
  size_t height() const;
  bool has_blocks() const;  // it shows UTF-8
  bool is_gone() const;     // it was closed
  // Call it after SIGWINCH.
  void resize();
  // Draws the head, then the body from line `scroll` on.
  void draw(const Line& head, const std::vector<Line>& body, size_t scroll);
  // Nothing: no key was pressed.
  std::optional<Key> key();

 private:
  Terminal() = default;
};

}  // namespace egret::top
