// How fast passwords may be guessed.
//
// Every guess takes one from two token buckets before it is judged: the connection's own, and that of (user, address of
// the client). A right password gives both back, so whoever knows it is never limited by how often it is told. An empty
// bucket means that the guess waits; one of another user, or from another address, does not.
//
//   guess ─▶ connection's bucket ─▶ bucket of (user, address) ─▶ judged ─┬─ right: both get theirs back
//                └── empty: wait ────────┘                               └─ wrong: it is gone; one comes back per interval
//
// The buckets of (user, address) are a fixed table that a keyed hash finds its way in: however many users and addresses
// are tried, it neither grows nor forgets, and it is the same for users that do not exist. Two pairs may share a
// bucket, by chance only: nobody outside can compute which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace egret::proxy {

// The options auth_guesses and auth_guess_interval.
struct GuessPace {
  uint32_t burst = 1;        // guesses that may be made at once
  uint64_t interval_ns = 0;  // one more may be made after each
};

// A token bucket. A value class; no thread safety of its own.
class GuessBucket {
 public:
  // Takes one. Returns 0, or how long it will be empty in ns: then none was taken.
  uint64_t take(uint64_t now_ns, const GuessPace& pace);
  void give_back(const GuessPace& pace);

 private:
  uint64_t full_at_ns_ = 0;  // when it will be full again
};

// The buckets of (user, address). One for the proxy; any thread.
class GuessLimit {
 public:
  GuessLimit();
  // As GuessBucket::take() and give_back(), for the bucket of that user and address.
  uint64_t take(std::string_view user, std::string_view address, uint64_t now_ns, const GuessPace& pace);
  void give_back(std::string_view user, std::string_view address, const GuessPace& pace);

 private:
  static constexpr size_t kBuckets = 65536;

  GuessBucket& bucket_of(std::string_view user, std::string_view address);

  std::array<std::byte, 32> key_{};  // of the hash; random
  std::mutex mutex_;
  std::vector<GuessBucket> buckets_{kBuckets};
};

}  // namespace egret::proxy
