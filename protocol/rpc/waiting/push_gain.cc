#include "rpc/waiting/push_gain.h"

#include <algorithm>

namespace egret::rpc {

namespace {
constexpr uint32_t kMemory = 256;         // messages that an average is about
constexpr uint32_t kEnough = 128;         // messages before the first change
constexpr uint64_t kLongest = 10'000'000;  // ns; what took longer counts as this long
// Fetching may take so many times as long as pushing before results are pushed, and must come down to so many before
// they are fetched again.
constexpr double kWorse = 1.17;
constexpr double kAsGood = 1.1;
// A round trip follows short ones quickly, long ones slowly: those had to wait for something else.
constexpr double kShorterPart = 4, kLongerPart = 256;
constexpr double kForgotten = 1 << 14;  // messages after which what pushes took is believed no more
}  // namespace

void PushGain::Average::add(uint64_t sample_ns) {
  count = std::min(count + 1, kMemory);
  ns += (static_cast<double>(std::min(sample_ns, kLongest)) - ns) / count;
}

void PushGain::on_read(uint64_t trip_ns) {
  const auto trip = static_cast<double>(std::min(trip_ns, kLongest));
  if (trip_ns_ == 0) trip_ns_ = trip;
  trip_ns_ += (trip - trip_ns_) / (trip < trip_ns_ ? kShorterPart : kLongerPart);
}

uint64_t PushGain::ready_ns(uint64_t waited_ns) const {
  return waited_ns - std::min(waited_ns, trip_ns());
}

void PushGain::on_fetched(uint64_t waited_ns, uint64_t processing_ns) {
  processing_.add(processing_ns);
  fetched_.add(waited_ns - std::min(waited_ns, processing_ns));
  pushed_.ns += (trip_ns_ - pushed_.ns) / (pushed_.count == 0 ? 1 : kForgotten);
  judge();
}

void PushGain::on_pushed(uint64_t waited_ns, uint64_t processing_ns, uint64_t fetched_ns) {
  processing_.add(processing_ns);
  pushed_.add(waited_ns - std::min(waited_ns, processing_ns));
  fetched_.add(fetched_ns - std::min(fetched_ns, processing_ns));
  judge();
}

void PushGain::judge() {
  ++since_change_;
  const double fetched = processing_.ns + fetched_.ns, pushed = processing_.ns + pushed_.ns;
  const bool is_other_right = is_pushing_ ? fetched < kAsGood * pushed : fetched > kWorse * pushed;
  in_a_row_ = is_other_right && fetched_.count >= kEnough ? in_a_row_ + 1 : 0;
  if (in_a_row_ < patience_) return;
  // Soon taken back: it was a mistake.
  patience_ = since_change_ <= 2 * patience_ ? std::min(patience_ * 2, kMostPatience) : kLeastPatience;
  since_change_ = in_a_row_ = 0;
  is_pushing_ = !is_pushing_;
}

}  // namespace egret::rpc
