// A watched daemon: its address, and the figures of its last answers. When an answer fails to come, the old figures are
// removed, so that they cannot be shown. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "top/figures.h"

namespace egret::top {

inline constexpr size_t kHistory = 300;  // intervals in the small plot

class Daemon {
 public:
  explicit Daemon(std::string address) : address_(std::move(address)) {}

  // take(): an answer came. miss(): it failed. `now_s`: seconds of a monotonic clock.
  void take(std::string_view text, double now_s);
  void miss(std::string why, double now_s);
  // The next interval begins, and the last answer has not come yet.
  void note_late();

  const std::string& address() const { return address_; }
  bool was_asked() const { return asked_; }
  bool has_answered() const { return answered_s_ >= 0; }  // ever
  bool is_up() const { return figures_.has_value() && !is_late_; }
  const std::string& why_down() const { return why_; }
  // Since when there is no answer: the last one's time, or that of the first failure.
  double down_since_s() const { return has_answered() ? answered_s_ : first_miss_s_; }
  const Figures& figures() const { return *figures_; }  // is_up() only
  // When we noticed that it was restarted, in seconds of now_s; nothing if it was not.
  std::optional<double> restarted_s() const { return restarted_s_; }
  // Requests or ops per second of each interval, the newest last; nothing for an interval without an answer.
  const std::deque<std::optional<double>>& history() const { return history_; }

 private:
  void remember(std::optional<double> rate);

  std::string address_;
  std::shared_ptr<const Scrape> last_;
  double last_s_ = 0;
  std::optional<Figures> figures_;  // none while there is no answer
  std::optional<double> started_;   // start time of the process that answered last
  std::optional<double> restarted_s_;
  bool asked_ = false;
  double answered_s_ = -1;
  double first_miss_s_ = 0;
  std::string why_;
  bool is_late_ = false;
  std::deque<std::optional<double>> history_;
};

}  // namespace egret::top
