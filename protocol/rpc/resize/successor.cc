#include "rpc/resize/successor.h"

#include <algorithm>
#include <array>
#include <utility>

namespace egret::rpc {

using base::Status;

Successor::~Successor() {
  if (endpoint_ != nullptr) endpoint_->close();
}

Status Successor::begin(const SessionOptions& asked, const wire::Grant& now, Aim aim, Connect connect,
                        uint64_t now_ns) {
  now_ = now;
  aim_ = aim;
  worker_id_ = asked.worker_id;
  deadline_ns_ = now_ns + asked.connect_timeout_ns;
  auto connected = connect(asked.address, asked.connect);
  if (!connected) return connected.status();
  endpoint_ = std::move(connected.value());
  return opening_.send_hello(asked, 0, *endpoint_);
}

base::Expected<Successor::State> Successor::look(uint64_t now_ns, bool has_uploads) {
  if (!is_granted_) {
    const auto granted = hear(now_ns);
    if (!granted) return granted.status();
    if (!granted.value()) return State::kOpening;
    is_granted_ = true;
    if (Status same = compare(); !same) return same;
  }
  if (ticks_++ >= kMostTicks) return Status::error("its lanes were never empty");
  return phase(has_uploads);
}

Successor::State Successor::phase(bool has_uploads) {
  if (at_ == 0 && has_uploads && waited_ < may_wait_) {
    ++waited_;
    return State::kEmptying;
  }
  const uint32_t at = at_++;
  if (at < kEmptyTicks) return State::kEmptying;
  if (at_ == kEmptyTicks + kRestTicks) {
    at_ = waited_ = 0;
    may_wait_ = std::min(2 * may_wait_, kMostWaitTicks);
  }
  return State::kResting;
}

base::Expected<bool> Successor::hear(uint64_t now_ns) {
  while (true) {
    std::array<std::byte, wire::kMaxFrame> frame{};
    size_t length = 0;
    if (Status received = endpoint_->receive_frame(frame, length); !received) return received;
    auto granted =
        length == 0 ? opening_.on_no_frame(*endpoint_) : opening_.on_frame(std::span(frame).first(length), *endpoint_);
    if (!granted || granted.value()) return granted;
    if (length == 0) break;
  }
  if (now_ns >= deadline_ns_) return Status::error("no answer to the handshake");
  return false;
}

// Ops that were routed to the first session must mean the same in the second.
Status Successor::compare() const {
  const wire::Grant& next = opening_.grant();
  // What follows from sizes and transports.
  constexpr uint64_t kOwnFeatures =
      wire::kSlotSizes | wire::kOrderedMemory | wire::kWakeTimers | wire::kLaneRings | wire::kDeliver;
  if (next.epoch != now_.epoch || next.hash_seed != now_.hash_seed || next.item_size_max != now_.item_size_max ||
      next.layout.lanes != now_.layout.lanes || next.rights != now_.rights ||
      ((next.features ^ now_.features) & ~kOwnFeatures) != 0) {
    return Status::error("the backend is another one than before");
  }
  const size_t bytes = next.layout.bytes();
  const bool fits = aim_ == Aim::kMore    ? bytes > now_.layout.bytes()
                    : aim_ == Aim::kFewer ? bytes < now_.layout.bytes()
                                          : true;
  return fits ? Status::ok() : Status::error("the backend has no other size than " + now_.layout.to_string());
}

void Successor::swap(std::unique_ptr<transport::ClientEndpoint>& endpoint, Opening& opening) {
  std::swap(endpoint, endpoint_);
  std::swap(opening, opening_);
}

}  // namespace egret::rpc
