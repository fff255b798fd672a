#include "rpc/waiting/push_gain.h"

#include <algorithm>

namespace egret::rpc {

namespace {
constexpr uint32_t kMemory = 2048;         // messages that an average is about
constexpr uint32_t kSoon = 1 << 15;        // messages after a change; a change back is soon
constexpr uint32_t kEnough = 512;          // messages before the first change
constexpr uint64_t kLongest = 10'000'000;  // ns; what took longer counts as this long
// Fetching may take so many times as long as pushing before results are pushed, and must come down to so many before
// they are fetched again.
constexpr double kWorse = 1.17;
constexpr double kAsGood = 1.1;
// The same for fetches in vain, of a thousand messages; of one message so many count.
constexpr double kManyVain = 160, kFewVain = 140;
constexpr uint32_t kMostVain = 8;
constexpr double kForgotten = 1 << 16;  // messages after which what pushes took is believed no more

// Follows short times quickly, long ones slowly: those had to wait for something else.
double follow_least(double least, double sample) {
  return least + (sample - least) / (sample < least ? 4 : 256);
}

}  // namespace

void PushGain::Average::add(uint64_t sample) {
  count = std::min(count + 1, kMemory);
  mean += (static_cast<double>(std::min(sample, kLongest)) - mean) / count;
}

void PushGain::on_read(uint64_t trip_ns) {
  const auto trip = static_cast<double>(std::min(trip_ns, kLongest));
  trip_ns_ = trip_ns_ == 0 ? trip : follow_least(trip_ns_, trip);
}

uint64_t PushGain::ready_ns(uint64_t waited_ns) const {
  return waited_ns - std::min(waited_ns, trip_ns() + static_cast<uint64_t>(std::max(post_ns_, 0.0)));
}

void PushGain::on_fetched(const Fetched& fetched, uint64_t processing_ns) {
  if (settling_ > 0) {
    --settling_;
    return;
  }
  pushed_.mean += (trip_ns_ - pushed_.mean) / (pushed_.count == 0 ? 1 : kForgotten);
  add(fetched, processing_ns);
}

void PushGain::on_pushed(uint64_t waited_ns, uint64_t processing_ns, const Fetched& as_if) {
  const uint64_t crossing_ns = waited_ns - std::min(waited_ns, processing_ns);
  pushed_.add(crossing_ns);
  if (trip_ns_ > 0) {
    const double post = std::max(static_cast<double>(crossing_ns) - trip_ns_, 0.0);
    post_ns_ = post_ns_ < 0 ? post : follow_least(post_ns_, post);
  }
  add(as_if, processing_ns);
}

void PushGain::add(const Fetched& fetched, uint64_t processing_ns) {
  processing_.add(processing_ns);
  fetched_.add(fetched.waited_ns - std::min(fetched.waited_ns, processing_ns));
  vain_.add(uint64_t{1000} * std::min(fetched.refetches, kMostVain));
  judge();
}

void PushGain::judge() {
  ++since_change_;
  const double fetched = processing_.mean + fetched_.mean, pushed = processing_.mean + pushed_.mean;
  const bool is_other_right = is_pushing_ ? fetched < kAsGood * pushed && vain_.mean < kFewVain
                                          : fetched > kWorse * pushed || vain_.mean > kManyVain;
  in_a_row_ = is_other_right && fetched_.count >= kEnough ? in_a_row_ + 1 : 0;
  if (in_a_row_ < (is_pushing_ ? patience_ : kLeastPatience)) return;
  // Soon pushing again: fetching was a mistake, wait longer before the next try.
  if (!is_pushing_) patience_ = since_change_ <= kSoon ? std::min(patience_ * 2, kMostPatience) : kLeastPatience;
  since_change_ = in_a_row_ = 0;
  is_pushing_ = !is_pushing_;
}

}  // namespace egret::rpc
