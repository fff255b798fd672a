// Values that came whole from a backend and did not fit the response of the client who asked: kept until the client has
// fetched the rest by chunks, or for a second. A backend tells the version of an item only with a value that it has cut
// itself, so these have versions of our own, which no backend has: their highest bit is set.
//
//   a whole hit that is too long ─ keep() ─▶ a partial one, of that version ─ chunk ops ─▶ find() ─▶ … the end was sent ─▶ drop()
//
// Of one inbound lane; what all lanes of a relay keep together is limited by their Budget. What cannot be kept has the
// version kGone: its chunks are answered as changed, so the client asks again.
// Thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace egret::rpc::relay {

// Bytes that may be kept at once.
class Budget {
 public:
  explicit Budget(uint64_t limit) : limit_(limit) {}
  bool take(uint64_t bytes) {
    if (used_ + bytes > limit_) return false;
    used_ += bytes;
    return true;
  }
  void give(uint64_t bytes) { used_ -= bytes; }
  void set_limit(uint64_t limit) { limit_ = limit; }
  uint64_t used() const { return used_; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
};

class Remainders {
 public:
  static constexpr uint64_t kOurs = uint64_t{1} << 63;  // set in versions of ours
  static constexpr uint64_t kGone = kOurs;
  static constexpr uint64_t kKeptNs = 1'000'000'000;   // as a backend keeps a pin
  static constexpr uint64_t kMostOfLane = 256 * 1024;  // bytes
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit Remainders(Budget& budget) : budget_(budget) {}
  ~Remainders();
  Remainders(const Remainders&) = delete;
  Remainders& operator=(const Remainders&) = delete;

  // Copies a value, and returns its version.
  uint64_t keep(std::string_view value, uint64_t now_ns);
  // The number of the kept value of that version; it stays until let_go() has been called as often. kNone: it is gone.
  uint32_t find(uint64_t version);
  // `is_last`: the client has the end of the value.
  void let_go(uint32_t number, bool is_last);
  std::string_view value(uint32_t number) const { return {kept_[number].bytes.get(), kept_[number].length}; }
  uint64_t version(uint32_t number) const { return kept_[number].version; }
  // Drops what was kept too long.
  void expire(uint64_t now_ns);
  bool empty() const { return used_ == 0; }
  // Drops everything, whoever uses it: nothing else may be called any more.
  void clear();

 private:
  struct Kept {
    uint64_t version = 0;  // 0: free
    std::unique_ptr<char[]> bytes;
    uint32_t length = 0;
    uint32_t users = 0;
    bool is_over = false;  // dropped when the last user lets go
    uint64_t since_ns = 0;
  };
  void drop(Kept& kept);

  Budget& budget_;
  std::vector<Kept> kept_;
  uint64_t used_ = 0;  // bytes
  uint64_t next_version_ = kOurs;
};

}  // namespace egret::rpc::relay
