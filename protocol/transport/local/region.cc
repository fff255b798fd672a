#include "transport/local/region.h"

#include <cerrno>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace egret::transport::local {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

void signal(int event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
}

}  // namespace

Expected<std::shared_ptr<Region>> Region::make(const RegionShape& shape) {
  auto region = std::make_shared<Region>();
  region->shape_ = shape;
  auto requests = device::Slabs::of_process().take(shape.request_bytes, device::kAnyNode);
  if (!requests) return requests.status();
  auto responses = device::Slabs::of_process().take(shape.response_bytes, device::kAnyNode);
  if (!responses) return responses.status();
  region->requests_ = std::move(requests.value());
  region->responses_ = std::move(responses.value());
  region->to_server_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  region->to_client_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!region->to_server_.is_open() || !region->to_client_.is_open()) return Status::system_error("eventfd", errno);
  region->rings_.of_lane = std::vector<std::atomic<uint64_t>>(shape.lanes);
  region->seen_.assign(shape.lanes, 0);
  region->at_flush_.assign(shape.lanes, nullptr);
  return region;
}

void Region::ring(uint32_t lane, int home) {
  rings_.of_lane[lane].store(rings_.of_lane[lane].load(std::memory_order_relaxed) + 1, std::memory_order_release);
  rings_.all.store(rings_.all.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  FlushServer* const own = home < 0 ? nullptr : at_flush_[static_cast<uint32_t>(home)];
  if (own != nullptr) return own->on_ring();
  signal(to_server_.get());
}

size_t Region::take_rings(std::span<Event> events) {
  const uint64_t all = rings_.all.load(std::memory_order_acquire);
  if (all == all_seen_) return 0;
  size_t found = 0;
  for (uint32_t lane = 0; lane < shape_.lanes; ++lane) {
    const uint64_t count = rings_.of_lane[lane].load(std::memory_order_acquire);
    if (count == seen_[lane]) continue;
    if (found == events.size()) return found;  // the rest at the next call: all_seen_ still differs
    seen_[lane] = count;
    events[found++] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
  }
  all_seen_ = all;
  return found;
}

void Region::deliver() const {
  signal(to_client_.get());
}

}  // namespace egret::transport::local
