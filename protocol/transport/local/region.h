// What both ends of a local session share. Either end may go first: the memory stays until both have.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/device/slabs.h"
#include "transport/transport.h"

namespace egret::transport::local {

// Slots, rings and wake-ups. Made by the server before its client sees it.
class Region {
 public:
  static base::Expected<std::shared_ptr<Region>> make(const RegionShape& shape);

  const RegionShape& shape() const { return shape_; }
  std::byte* requests() const { return requests_.data(); }
  std::byte* responses() const { return responses_.data(); }
  int to_server() const { return to_server_.get(); }
  int to_client() const { return to_client_.get(); }

  // --- the client's thread
  // `home`: the lane of the server that takes the rings, if it is this thread's.
  void ring(uint32_t lane, int home);
  // Who serves the lane at the client's flush; null: another thread does, when it looks.
  FlushServer*& at_flush(uint32_t lane) { return at_flush_[lane]; }

  // --- the thread of the server's home
  // The lanes that were rung since the last call, at most events.size() of them.
  size_t take_rings(std::span<Event> events);

  // --- any thread
  void deliver() const;

 private:
  struct alignas(64) Rings {
    std::atomic<uint64_t> all{0};
    std::vector<std::atomic<uint64_t>> of_lane;
  };

  RegionShape shape_;
  device::Slabs::Part requests_, responses_;
  base::UniqueFd to_server_, to_client_;
  Rings rings_;  // counted by the client alone, so that none is lost and none needs clearing
  uint64_t all_seen_ = 0;
  std::vector<uint64_t> seen_;
  std::vector<FlushServer*> at_flush_;
};

// What both ends know from the beginning, and how the region gets from server to client, with the frame that grants it.
struct Link {
  explicit Link(int home_partition) : home(home_partition) {}
  const int home;
  const std::thread::id client = std::this_thread::get_id();  // it made the link
  std::mutex mutex;
  std::shared_ptr<Region> granted;
};

}  // namespace egret::transport::local
