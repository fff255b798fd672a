// Counts client connections against max_connections. The frontend adds them; any thread that ends one calls leave(),
// which wakes the frontend if it waits for room.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace egret::proxy {

class ConnectionGate {
 public:
  // Throws std::system_error if the system has no descriptors for it.
  ConnectionGate() : left_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!left_.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
  }

  // For the frontend.
  bool has_room(uint32_t limit) const { return open_.load(std::memory_order_relaxed) < limit; }
  void enter() { open_.fetch_add(1, std::memory_order_relaxed); }
  // Makes the descriptor readable when a connection leaves. False: there is room already.
  bool wait_for_room(uint32_t limit) {
    awaited_.store(true);
    // A leave() after the store above sees awaited_; an earlier one is seen by this load.
    return open_.load() >= limit || !awaited_.exchange(false);
  }
  int fd() const { return left_.get(); }
  void take_notice() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(left_.get(), &count, sizeof count);
  }

  // Any thread.
  void leave() {
    open_.fetch_sub(1);
    if (!awaited_.load() || !awaited_.exchange(false)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(left_.get(), &one, sizeof one);
  }

 private:
  std::atomic<uint32_t> open_{0};  // including those that no worker has yet
  std::atomic<bool> awaited_{false};
  base::UniqueFd left_;
};

}  // namespace egret::proxy
