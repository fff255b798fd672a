// By which of its backend's addresses a session goes, where there are two of them (rdma+tcp:HOST:PORT).
//
//   preferred ─ fails, or says nothing in time ─▶ fallback, at once ─ fails ─▶ a pause ─▶ preferred, with twice the time
//      ▲                                             │ open
//      └── granted ── a second session by the preferred one (Successor) is tried, after a pause that doubles each time
//
// A preferred one that works only for moments is tried as late as one that does not work. Pure: time is the caller's,
// in ns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/address.h"

namespace egret::rpc {

class TransportChoice {
 public:
  // For this long an attempt by the preferred one may be without a word from the backend, before it is the fallback's
  // turn; twice as long after each round in which both have failed.
  static constexpr uint64_t kHeadStartNs = 250'000'000;
  static constexpr uint64_t kFirstReturnNs = 1'000'000'000;
  static constexpr uint64_t kLastReturnNs = 60'000'000'000;
  static constexpr uint64_t kLastingNs = 30'000'000'000;  // what has served for so long works

  explicit TransportChoice(const std::string& address) : addresses_(transport::alternatives_of(address)) {}

  // Of the attempt or the session under way, or of the next attempt.
  const std::string& address() const { return addresses_[at_]; }
  const std::string& preferred() const { return addresses_.front(); }
  bool is_fallback() const { return at_ > 0; }

  // How long the attempt that begins now may be without a word from the backend.
  uint64_t patience_ns(uint64_t most_ns) const {
    return at_ == last() ? most_ns : std::min(most_ns, kHeadStartNs << std::min(rounds_, 16U));
  }
  // The attempt has failed. Whether the next one is due at once, by the fallback.
  bool falls_back() {
    if (at_ < last()) {
      ++at_;
      return true;
    }
    at_ = 0;
    ++rounds_;
    return false;
  }
  // A session is open. `luck`: any number: sessions that were lost together do not return together.
  void open(uint64_t now_ns, uint64_t luck) {
    rounds_ = 0;
    opened_ns_ = now_ns;
    put_off(now_ns, luck);
  }
  // It has ended.
  void lose(uint64_t now_ns) {
    if (!is_fallback()) {
      return_after_ns_ = now_ns - opened_ns_ >= kLastingNs ? kFirstReturnNs : later();
    }
    at_ = return_after_ns_ > kFirstReturnNs ? last() : 0;
  }

  // It is time to try a second session by the preferred address.
  bool should_return(uint64_t now_ns) const { return is_fallback() && now_ns >= return_at_ns_; }
  void stay(uint64_t now_ns, uint64_t luck) {
    return_after_ns_ = later();
    put_off(now_ns, luck);
  }
  void come_back(uint64_t now_ns) {
    at_ = 0;
    opened_ns_ = now_ns;
  }

 private:
  size_t last() const { return addresses_.size() - 1; }
  uint64_t later() const { return std::min(2 * return_after_ns_, kLastReturnNs); }
  void put_off(uint64_t now_ns, uint64_t luck) {
    return_at_ns_ = now_ns + return_after_ns_ / 2 + (return_after_ns_ / 2) * (luck % 1024) / 1024;
  }

  const std::vector<std::string> addresses_;
  size_t at_ = 0;
  uint32_t rounds_ = 0;  // in which every address has failed, one after the other
  uint64_t opened_ns_ = 0;
  uint64_t return_after_ns_ = kFirstReturnNs;
  uint64_t return_at_ns_ = 0;
};

}  // namespace egret::rpc
