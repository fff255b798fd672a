// A daemon that is watched: its address, and what its last answers amount to. Nothing of an answer outlives the next
// one that fails to come: who shows it cannot show old figures. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "top/figures.h"

namespace egret::top {

inline constexpr size_t kHistory = 300;  // intervals remembered for the small plot

class Daemon {
 public:
  explicit Daemon(std::string address) : address_(std::move(address)) {}

  // An answer, and none. `now_s`: seconds of a clock that does not go back.
  void take(std::string_view text, double now_s);
  void miss(std::string why, double now_s);
  // It is time for the next answer, and the last has not come yet.
  void note_late();

  const std::string& address() const { return address_; }
  bool was_asked() const { return asked_; }
  bool has_answered() const { return answered_s_ >= 0; }  // ever
  bool is_up() const { return figures_.has_value() && !is_late_; }
  const std::string& why_down() const { return why_; }
  // Since when there is no answer: the last one's time, or that of the first failure.
  double down_since_s() const { return has_answered() ? answered_s_ : first_miss_s_; }
  const Figures& figures() const { return *figures_; }  // is_up() only
  // When it was started anew under our eyes, in seconds of now_s; nothing if it was not.
  std::optional<double> restarted_s() const { return restarted_s_; }
  // Requests or ops by the second, an interval each, the newest last; nothing for one without an answer.
  const std::deque<std::optional<double>>& history() const { return history_; }

 private:
  void remember(std::optional<double> rate);

  std::string address_;
  std::shared_ptr<const Scrape> last_;
  double last_s_ = 0;
  std::optional<Figures> figures_;  // none while there is no answer
  std::optional<double> started_;   // of the process that answered last
  std::optional<double> restarted_s_;
  bool asked_ = false;
  double answered_s_ = -1;
  double first_miss_s_ = 0;
  std::string why_;
  bool is_late_ = false;
  std::deque<std::optional<double>> history_;
};

}  // namespace egret::top
