#include "bench_paradigms/rpc/mailbox.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

namespace egret::bench_paradigms {

namespace {

struct Offers {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Mailbox>> all;
  std::random_device random;
};
Offers& offers() {
  static Offers offers;
  return offers;
}

}  // namespace

Mailbox::Mailbox(const RpcShape& shape) : slots_(shape.slots) {
  for (Slot& slot : slots_) {
    slot.request.resize(shape.request_bytes);
    slot.response.resize(shape.response_bytes);
  }
}

bool Mailbox::ask(Bytes request, uint64_t ticket) {
  given_back_ = taken_;
  Slot& slot = slots_[asked_ % slots_.size()];
  if (asked_ - given_back_ == slots_.size() || request.size() > slot.request.size()) return false;
  std::memcpy(slot.request.data(), request.data(), request.size());
  slot.request_bytes = static_cast<uint32_t>(request.size());
  slot.ticket = ticket;
  slot.state.store(kAsked, std::memory_order_release);
  ++asked_;
  return true;
}

uint32_t Mailbox::take(std::span<Reply> out) {
  given_back_ = taken_;
  uint32_t found = 0;
  for (; found < out.size() && taken_ < asked_; ++taken_) {
    const Slot& slot = slots_[taken_ % slots_.size()];
    if (slot.state.load(std::memory_order_acquire) != kAnswered) break;
    out[found++] = {slot.ticket, ReplyState::kAnswered, Bytes(slot.response).first(slot.response_bytes)};
  }
  return found;
}

uint32_t Mailbox::serve(NodeId client, RpcHandler& handler) {
  uint32_t executed = 0;
  for (; executed < slots_.size(); ++executed, ++served_) {
    Slot& slot = slots_[served_ % slots_.size()];
    if (slot.state.load(std::memory_order_acquire) != kAsked) break;
    slot.response_bytes = handler.handle(client, Bytes(slot.request).first(slot.request_bytes), slot.response);
    slot.state.store(kAnswered, std::memory_order_release);
  }
  return executed;
}

uint64_t offer_mailbox(const std::shared_ptr<Mailbox>& mailbox) {
  Offers& known = offers();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.second.expired(); });
  uint64_t number = 0;
  while (number == 0 || known.all.contains(number)) number = uint64_t{known.random()} << 32 | known.random();
  known.all[number] = mailbox;
  return number;
}

std::shared_ptr<Mailbox> find_mailbox(uint64_t number) {
  Offers& known = offers();
  const std::lock_guard lock(known.mutex);
  const auto at = known.all.find(number);
  return at == known.all.end() ? nullptr : at->second.lock();
}

}  // namespace egret::bench_paradigms
