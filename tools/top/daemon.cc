#include "top/daemon.h"

#include <utility>

namespace egret::top {

void Daemon::take(std::string_view text, double now_s) {
  auto scrape = parse_exposition(text);
  const Step step(last_ ? &last_->samples() : nullptr, scrape->samples(), now_s - last_s_);
  Figures figures = figures_of(step);
  if (figures.kind == Kind::kUnknown) {
    miss("answers, but not as Egret does", now_s);
    return;
  }
  // It may have been restarted between two answers, with failed ones in between.
  const bool another = has_answered() && started_ != figures.started;
  if (figures.has_restarted || another) {
    figures.has_restarted = true;
    restarted_s_ = now_s;
  }
  started_ = figures.started;
  asked_ = true;
  is_late_ = false;
  answered_s_ = last_s_ = now_s;
  const auto rate = figure(table_of(figures.kind), figures.values, figures.kind == Kind::kProxy ? "requests" : "ops");
  remember(rate ? std::optional(rate->number) : std::nullopt);
  figures_ = std::move(figures);
  last_ = std::move(scrape);
}

void Daemon::miss(std::string why, double now_s) {
  if (!asked_) first_miss_s_ = now_s;
  asked_ = true;
  is_late_ = false;
  why_ = std::move(why);
  figures_.reset();
  last_.reset();  // do not compute a rate across failed answers
  remember(std::nullopt);
}

void Daemon::note_late() {
  is_late_ = true;
  why_ = "no answer yet";
  remember(std::nullopt);
}

void Daemon::remember(std::optional<double> rate) {
  history_.push_back(rate);
  if (history_.size() > kHistory) history_.pop_front();
}

}  // namespace egret::top
