#include "rpc/fetch_policy.h"

#include <algorithm>

namespace egret::rpc {

namespace {
constexpr uint64_t kFirstFetchMost = 1'000'000;  // ns
constexpr uint64_t kStepPart = 128;              // a step is this part of the delay
constexpr uint64_t kMessagesPerVain = 12;        // fetches in vain that are aimed at: one in so many messages
constexpr uint32_t kMostVain = 8;                // of one message; more of them count as so many
constexpr uint32_t kHitsPerSpeed = 32;           // after so many hits in a row the delay shrinks faster
constexpr uint32_t kManyMisses = 3;              // in a row: the delay is far too short
constexpr uint64_t kRefetchLeast = 1'000;        // ns
constexpr uint64_t kRefetchMost = 1'000'000;     // ns
constexpr uint32_t kLine = 64;                   // bytes
constexpr uint32_t kSlowBeforeReply = 2;         // messages in a row (the paper's figure)
}  // namespace

void FetchPolicy::set_options(const FetchOptions& options) {
  options_ = options;
  if (options.mode == FetchMode::kFetch) is_slow_ = false;
  choose();
}

void FetchPolicy::choose() {
  const bool is_auto = options_.mode == FetchMode::kAuto;
  reason_ = options_.mode == FetchMode::kReply ? Reason::kSet
            : is_auto && is_slow_              ? Reason::kSlow
            : is_auto && is_cheap_             ? Reason::kCheap
            : is_auto && gain_.is_pushing()    ? Reason::kQuicker
                                               : Reason::kNone;
}

uint32_t FetchPolicy::fetch_size() const {
  // An eighth more than the average, in whole cache lines: a response a little longer would cost a second READ.
  const uint32_t room = (response_average_ + response_average_ / 8 + kLine - 1) / kLine * kLine;
  return std::clamp(room, options_.min_fetch, options_.max_fetch);
}

// The delay goes down by a step with each message and up by ten with each fetch in vain: it rests where one fetch in ten
// messages is in vain, whatever the distribution of service times. Hits for long mean that service has become shorter:
// the steps grow. Misses in a row mean that the delay is far too short: then it becomes the time at which the result was
// still missing, at most fourfold at once.
void FetchPolicy::on_first_fetch(uint32_t refetches, uint64_t vain_ns) {
  const uint64_t step = first_fetch_ns_ / kStepPart + 1;
  if (refetches == 0) {
    misses_in_a_row_ = 0;
    ++hits_in_a_row_;
    first_fetch_ns_ -= std::min(first_fetch_ns_, step * (1 + hits_in_a_row_ / kHitsPerSpeed));
    return;
  }
  hits_in_a_row_ = 0;
  const uint64_t little = first_fetch_ns_ + step * (kMessagesPerVain * std::min(refetches, kMostVain) - 1);
  const uint64_t much = std::max(little, 4 * first_fetch_ns_);
  const uint64_t next = ++misses_in_a_row_ >= kManyMisses ? std::clamp(vain_ns, little, much) : little;
  first_fetch_ns_ = std::min(next, kFirstFetchMost);
}

// A result that one fetch has just missed is mostly there when that is seen. After that: the longer the wait so far, the
// longer the time to the next fetch; so a very late result costs only few more fetches, and is seen at most half as much
// later.
uint64_t FetchPolicy::refetch_ns(uint64_t waited_ns, uint32_t refetches) {
  if (refetches <= 1) return 0;
  return std::clamp(waited_ns / 2, kRefetchLeast, kRefetchMost);
}

void FetchPolicy::on_response(uint32_t refetches, uint64_t processing_ns, uint32_t response_bytes) {
  response_average_ = follow(response_average_, response_bytes);
  if (options_.mode != FetchMode::kAuto) return;
  if (!is_slow_) {
    ++since_return_;
    slow_in_a_row_ = refetches > options_.max_refetches ? slow_in_a_row_ + 1 : 0;
    if (slow_in_a_row_ >= kSlowBeforeReply) become_slow();
    return;
  }
  short_in_a_row_ = processing_ns < options_.short_processing_ns ? short_in_a_row_ + 1 : 0;
  if (short_in_a_row_ < patience_) return;
  is_slow_ = false;
  slow_in_a_row_ = 0;
  since_return_ = 0;
  choose();
}

void FetchPolicy::become_slow() {
  is_slow_ = true;
  short_in_a_row_ = 0;
  // Slow again within a few messages: fetching was a mistake, wait longer before the next try.
  patience_ = since_return_ < patience_ ? std::min(patience_ * 2, kMaxPatience) : kMinPatience;
  choose();
}

void FetchPolicy::on_hint(bool is_cheap) {
  if (is_cheap_ == is_cheap) return;
  is_cheap_ = is_cheap;
  choose();
}

void FetchPolicy::on_fetched(uint64_t waited_ns, uint64_t processing_ns, uint32_t refetches) {
  gain_.on_fetched({waited_ns, refetches}, processing_ns);
  choose();
}

bool FetchPolicy::on_pushed(uint64_t waited_ns, uint64_t processing_ns, bool is_behind) {
  const PushGain::Fetched as_if = fetch_as_if(gain_.ready_ns(waited_ns), is_behind);
  gain_.on_pushed(waited_ns, processing_ns, as_if);
  choose();
  return as_if.refetches > 0;
}

// The READs that would have been staged for a result that those find which are staged after `ready_ns` or later: learns
// from them, and says how long after sending the last one had come back.
PushGain::Fetched FetchPolicy::fetch_as_if(uint64_t ready_ns, bool is_behind) {
  const uint64_t trip_ns = gain_.trip_ns();
  uint64_t staged_ns = first_fetch_ns_, vain_ns = 0;
  if (staged_ns < ready_ns && is_behind) return {ready_ns + 2 * trip_ns, 0};  // looked for when the late one was seen
  uint32_t refetches = 0;
  while (staged_ns < ready_ns && refetches < kMostVain) {
    vain_ns = staged_ns;
    staged_ns += trip_ns + refetch_ns(staged_ns + trip_ns, ++refetches);
  }
  on_first_fetch(refetches, vain_ns);
  return {std::max(staged_ns, ready_ns) + trip_ns, refetches};
}

}  // namespace egret::rpc
