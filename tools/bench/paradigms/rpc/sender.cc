#include "bench_paradigms/rpc/sender.h"

#include <algorithm>

namespace egret::bench_paradigms {

void Sender::start(Pair& pair, uint32_t index, const Limits& limits) {
  pair_ = &pair;
  index_ = index;
  limits_ = limits;
  collected_.reserve(limits.most);
}

bool Sender::add(Work work, uint16_t user) {
  if (collected_.size() >= limits_.most) return false;
  const bool sends = work.verb == Verb::kWrite || work.verb == Verb::kSend;
  work.is_inline = sends && work.bytes > 0 && work.bytes <= limits_.inline_bytes;
  work.is_signalled = user != 0 || ++unsignalled_ >= limits_.signal_every;
  if (work.is_signalled) unsignalled_ = 0;
  const auto position = posted_ + static_cast<uint32_t>(collected_.size()) + 1;
  work.tag = uint64_t{index_} << 48 | uint64_t{user} << 32 | position;
  collected_.push_back(work);
  return collected_.size() < limits_.doorbell || flush();
}

bool Sender::flush() {
  const uint32_t free = limits_.sends - (posted_ - freed_);
  const auto count = std::min(static_cast<uint32_t>(collected_.size()), free);
  if (count == 0) return true;
  if (!pair_->post(std::span(collected_).first(count))) return false;
  posted_ += count;
  collected_.erase(collected_.begin(), collected_.begin() + count);
  return true;
}

uint16_t Sender::completed(const Completion& completion) {
  freed_ = static_cast<uint32_t>(completion.tag);
  return static_cast<uint16_t>(completion.tag >> 32);
}

}  // namespace egret::bench_paradigms
