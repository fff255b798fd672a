// egret-top: shows the daemons' figures in a terminal.
//
//   every interval: Fetcher::ask ─▶ /metrics ─▶ Daemon::take or miss ─▶ Terminal, lines, or JSON
//
// One thread. It sleeps in Fetcher::wait, which keys and signals end, too.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "top/daemon.h"
#include "top/fetch.h"
#include "top/json.h"
#include "top/options.h"
#include "top/screen.h"
#include "top/terminal.h"
#include "top/text.h"

namespace {

using namespace egret::top;

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double unix_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A descriptor for signals: those that end the program, so that the terminal is restored, and SIGWINCH.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH})
      sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    descriptor_ = egret::base::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int descriptor() const { return descriptor_.get(); }
  int ending() const { return ending_; }  // the signal that ends the program; 0: none
  // True: the terminal's size has changed.
  bool take() {
    bool resized = false;
    signalfd_siginfo info{};
    while (read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGWINCH) {
        resized = true;
      } else {
        ending_ = static_cast<int>(info.ssi_signo);
      }
    }
    return resized;
  }

 private:
  egret::base::UniqueFd descriptor_;
  int ending_ = 0;
};

// The daemons, and the time of the next requests.
class Watch {
 public:
  explicit Watch(const Options& options) : options_(options), fetcher_(options.targets), next_s_(monotonic_s()) {
    for (const Target& target : options.targets) daemons_.emplace_back(target.shown);
  }

  // Sends requests if it is time, and takes answers until something happens. True: a round is complete.
  bool step(bool asks, std::span<const int> descriptors) {
    // With --once wait for every answer; else a late answer delays no other.
    asks = asks && !(options_.once && fetcher_.is_asking());
    if (asks && monotonic_s() >= next_s_) start_round();
    const double left_s = asks ? std::clamp(next_s_ - monotonic_s(), 0.0, 1.0) : 1;
    for (const Answer& answer : fetcher_.wait(static_cast<int>(left_s * 1000) + 1, descriptors)) {
      if (answer.is_ok) {
        daemons_[answer.target].take(answer.text, monotonic_s());
      } else {
        daemons_[answer.target].miss(answer.text, monotonic_s());
      }
    }
    if (!is_round_open_ || (fetcher_.is_asking() && (options_.once || monotonic_s() < next_s_))) return false;
    is_round_open_ = false;
    return true;
  }

  // Leaves out a default address that never answered, if the other one is up.
  std::vector<const Daemon*> shown() const {
    const bool any = std::ranges::any_of(daemons_, [](const Daemon& daemon) { return daemon.has_answered(); });
    std::vector<const Daemon*> shown;
    for (const Daemon& daemon : daemons_) {
      if (!options_.are_defaults || !any || daemon.has_answered()) shown.push_back(&daemon);
    }
    return shown;
  }
  bool is_any_up() const {
    return std::ranges::any_of(daemons_, [](const Daemon& daemon) { return daemon.is_up(); });
  }

 private:
  void start_round() {
    for (size_t daemon = 0; daemon < daemons_.size(); ++daemon) {
      if (fetcher_.is_asking(daemon)) daemons_[daemon].note_late();
      fetcher_.ask(daemon);
    }
    // Keep to the schedule; skip requests missed during a pause or a stop.
    next_s_ = std::max(next_s_ + options_.interval_s, monotonic_s());
    is_round_open_ = true;
  }

  const Options& options_;
  Fetcher fetcher_;
  std::vector<Daemon> daemons_;
  double next_s_;
  bool is_round_open_ = false;
};

Frame frame_now(const Options& options, bool has_blocks) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return {.now_s = monotonic_s(),
          .unix_time_s = unix_s(),
          .clock = fmt::format("{:%H:%M:%S}", parts),
          .interval = seconds_text(options.interval_s),
          .has_blocks = has_blocks};
}

void run_on_terminal(const Options& options, Signals& signals, Terminal& terminal) {
  Watch watch(options);
  Choices choices;
  Frame frame = frame_now(options, terminal.has_blocks());
  const std::array<int, 2> descriptors = {STDIN_FILENO, signals.descriptor()};
  while (!choices.quits && signals.ending() == 0 && !terminal.is_gone()) {
    watch.step(!choices.is_paused, descriptors);
    if (signals.take()) terminal.resize();
    if (!choices.is_paused) frame = frame_now(options, terminal.has_blocks());
    const size_t height = terminal.height() > 0 ? terminal.height() - 1 : 0;
    auto body = body_lines(watch.shown(), frame, choices, terminal.width());
    while (const auto key = terminal.key()) {
      press(*key, choices, body.size(), height);
      body = body_lines(watch.shown(), frame, choices, terminal.width());
    }
    press(Key::kOther, choices, body.size(), height);
    terminal.draw(head_line(frame, choices, terminal.width()), body, choices.scroll);
  }
}

void print_round(const Options& options, const Watch& watch) {
  const auto daemons = watch.shown();
  const Frame frame = frame_now(options, false);
  std::string text;
  if (options.json) {
    text = to_json(daemons, unix_s()) + "\n";
  } else if (options.once) {
    for (const Line& line : body_lines(daemons, frame, {}, 1000)) text += text_of(line) + "\n";
    text.erase(0, text.find_first_not_of('\n'));
  } else {
    for (const Daemon* daemon : daemons) text += plain_line(*daemon, frame) + "\n";
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int run_in_lines(const Options& options, Signals& signals) {
  Watch watch(options);
  const std::array<int, 1> descriptors = {signals.descriptor()};
  int rounds = 0;
  while (signals.ending() == 0) {
    const bool complete = watch.step(true, descriptors);
    signals.take();
    if (!complete) continue;
    // Rates need a second answer; if no daemon answers, do not wait for it.
    if (++rounds == 1 && watch.is_any_up()) continue;
    print_round(options, watch);
    if (options.once || std::ferror(stdout) != 0) return watch.is_any_up() && std::ferror(stdout) == 0 ? 0 : 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int exit_status = 0;
  if (!parse_options(argc, argv, options, exit_status)) return exit_status;
  Signals signals;
  const bool wants_lines = options.plain || options.json || options.once;
  if (auto terminal = wants_lines ? nullptr : Terminal::open()) {
    run_on_terminal(options, signals, *terminal);
  } else {
    exit_status = run_in_lines(options, signals);
  }
  if (signals.ending() == 0) return exit_status;
  // End by the same signal, so that the parent process sees it.
  std::signal(signals.ending(), SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signals.ending());
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signals.ending());
  return 1;
}
