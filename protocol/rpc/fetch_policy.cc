#include "rpc/fetch_policy.h"

#include <algorithm>

namespace egret::rpc {

namespace {
constexpr uint32_t kSlowBeforeReply = 2;  // messages in a row (the paper's figure)

// A running average that follows growth at once by half and decay slowly: packing too tightly costs another message.
uint32_t follow(uint32_t average, uint32_t sample) {
  if (sample > average) return average + (sample - average + 1) / 2;
  return average - (average - sample) / 16;
}
}  // namespace

uint32_t FetchPolicy::fetch_size() const {
  return std::clamp(response_average_, options_.min_fetch, options_.max_fetch);
}

void FetchPolicy::on_response(uint32_t refetches, uint64_t processing_ns, uint32_t response_bytes) {
  response_average_ = follow(response_average_, response_bytes);
  if (mode_ == Mode::kFetch) {
    ++since_return_;
    slow_in_a_row_ = refetches > options_.max_refetches ? slow_in_a_row_ + 1 : 0;
    if (slow_in_a_row_ >= kSlowBeforeReply) enter_reply();
    return;
  }
  short_in_a_row_ = processing_ns < options_.short_processing_ns ? short_in_a_row_ + 1 : 0;
  if (short_in_a_row_ < patience_) return;
  mode_ = Mode::kFetch;
  slow_in_a_row_ = 0;
  since_return_ = 0;
}

void FetchPolicy::enter_reply() {
  mode_ = Mode::kReply;
  short_in_a_row_ = 0;
  ++switches_to_reply_;
  // Back within a few messages: fetching was a mistake, wait longer before the next try.
  patience_ = since_return_ < patience_ ? std::min(patience_ * 2, kMaxPatience) : kMinPatience;
}

void FetchPolicy::on_value(uint32_t length) {
  value_average_ = follow(value_average_, length);
}

}  // namespace egret::rpc
