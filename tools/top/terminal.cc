#include "top/terminal.h"

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

namespace egret::top {

namespace {

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

// What a handler of kFatal needs. It must not call ncurses.
struct Rescue {
  termios settings{};
  char sequences[128] = {};
  size_t length = 0;
};
Rescue rescue;
SCREEN* screen = nullptr;

void restore_and_die(int number) {
  (void)!write(STDOUT_FILENO, rescue.sequences, rescue.length);
  tcsetattr(STDIN_FILENO, TCSANOW, &rescue.settings);
  signal(number, SIG_DFL);
  raise(number);
}

void prepare_rescue() {
  std::string sequences;
  for (const char* capability : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
    const char* text = tigetstr(capability);
    if (text != nullptr && reinterpret_cast<intptr_t>(text) != -1) sequences += text;
  }
  rescue.length = std::min(sequences.size(), sizeof rescue.sequences);
  std::memcpy(rescue.sequences, sequences.data(), rescue.length);
  for (const int number : kFatal) signal(number, restore_and_die);
}

enum Pair : short { kGreen = 1, kYellow, kRed, kCyan };

void prepare_colours() {
  if (!has_colors()) return;
  start_color();
  const short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
  init_pair(kGreen, COLOR_GREEN, background);
  init_pair(kYellow, COLOR_YELLOW, background);
  init_pair(kRed, COLOR_RED, background);
  init_pair(kCyan, COLOR_CYAN, background);
}

attr_t attributes_of(Style style) {
  const auto colour = [](short pair) { return has_colors() ? static_cast<attr_t>(COLOR_PAIR(pair)) : A_NORMAL; };
  switch (style) {
    case Style::kPlain:
      return A_NORMAL;
    case Style::kSoft:
      return A_DIM;
    case Style::kBold:
      return A_BOLD;
    case Style::kGood:
      return colour(kGreen);
    case Style::kWarning:
      return colour(kYellow) | A_BOLD;
    case Style::kBad:
      return colour(kRed) | A_BOLD;
    case Style::kHeading:
      return colour(kCyan);
  }
  return A_NORMAL;
}

void draw_line(int row, const Line& line) {
  move(row, 0);
  for (const Span& span : line) {
    attrset(static_cast<int>(attributes_of(span.style)));
    addstr(span.text.c_str());
  }
  attrset(A_NORMAL);
}

}  // namespace

std::unique_ptr<Terminal> Terminal::open() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return nullptr;
  std::setlocale(LC_CTYPE, "");
  tcgetattr(STDIN_FILENO, &rescue.settings);
  screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) return nullptr;
  prepare_rescue();
  cbreak();
  noecho();
  nonl();
  nodelay(stdscr, TRUE);
  keypad(stdscr, TRUE);
  set_escdelay(25);
  curs_set(0);
  prepare_colours();
  return std::unique_ptr<Terminal>(new Terminal());
}

Terminal::~Terminal() {
  for (const int number : kFatal) signal(number, SIG_DFL);
  endwin();
  delscreen(screen);
  screen = nullptr;
}

size_t Terminal::width() const {
  return static_cast<size_t>(std::max(0, getmaxx(stdscr)));
}

size_t Terminal::height() const {
  return static_cast<size_t>(std::max(0, getmaxy(stdscr)));
}

bool Terminal::has_blocks() const {
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool Terminal::is_gone() const {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) == 1 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void Terminal::resize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    resizeterm(size.ws_row, size.ws_col);
  }
  clear();
}

void Terminal::draw(const Line& head, const std::vector<Line>& body, size_t scroll) {
  erase();
  draw_line(0, head);
  for (size_t row = 1; row < height() && scroll + row - 1 < body.size(); ++row) {
    draw_line(static_cast<int>(row), body[scroll + row - 1]);
  }
  refresh();
}

std::optional<Key> Terminal::key() {
  switch (getch()) {
    case ERR:
      return std::nullopt;
    case 'q':
    case 'Q':
      return Key::kQuit;
    case 'p':
    case ' ':
      return Key::kPause;
    case KEY_LEFT:
    case '<':
      return Key::kLeft;
    case KEY_RIGHT:
    case '>':
      return Key::kRight;
    case KEY_UP:
    case 'k':
      return Key::kUp;
    case KEY_DOWN:
    case 'j':
      return Key::kDown;
    case KEY_PPAGE:
      return Key::kPageUp;
    case KEY_NPAGE:
      return Key::kPageDown;
    case 'r':
      return Key::kReverse;
    case 'l':
      return Key::kLanes;
    case '?':
    case 'h':
      return Key::kHelp;
    default:
      return Key::kOther;
  }
}

}  // namespace egret::top
