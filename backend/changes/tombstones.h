// Which keys were changed or deleted since a warm phase began: what a proxy has read elsewhere before must not be filled
// in for them. A filter of bits: it may say so of a key that was not changed (that key is then not filled), but never
// the opposite. So its memory is fixed, and however much changes it only refuses more.
//
//   closed ─ open() ─▶ recording, fills are taken ─ its time is over ─▶ recording, fills are refused ─ kLingerNs ─▶ closed
//
// When the members change again meanwhile (turn()), what was recorded until then counts only for keys that were this
// backend's own before: of a key that comes to it with the change, its owner until then knows what is right.
//
// Thread: the partition's. Memory: allocated by open(), outside the store's; freed when the phase is forgotten.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

namespace egret::backend {

class Tombstones {
 public:
  // `memory`: of the partition; the filter takes 1/128 of it, 64 KiB to 2 MiB.
  explicit Tombstones(uint64_t memory);

  // Begins a phase that ends at that time, or makes the present one end then. False: there is no memory for it.
  bool open(uint64_t until_ns);
  bool is_recording() const { return words_ != nullptr; }
  void add(uint64_t hash);
  // Every key.
  void add_all() { is_full_ = true; }
  // The members have changed; `owned` says which keys were this backend's own before.
  using Owned = std::function<bool(std::string_view key)>;
  void turn(Owned owned, uint64_t now_ns);
  // Whether what was read elsewhere since open(), or since turn(), is still right for the key.
  bool allows_fill(std::string_view key, uint64_t hash, uint64_t now_ns) const;
  bool takes_fills(uint64_t now_ns) const { return is_recording() && now_ns < until_ns_; }
  // When forget_if_over() has something to do; UINT64_MAX: never.
  uint64_t due_ns() const;
  void forget_if_over(uint64_t now_ns);
  uint64_t bytes() const { return ((words_ != nullptr ? 1 : 0) + (before_ != nullptr ? 1 : 0)) * lines_ * kLine; }

  // Recording goes on for this long, so that a fill which was under way when one phase ended, and arrives in the next,
  // is judged by all that has changed.
  static constexpr uint64_t kLingerNs = 60'000'000'000;

 private:
  static constexpr uint64_t kLine = 64;  // bytes: the bits of a key lie in one cache line
  static constexpr uint64_t kWords = kLine / sizeof(uint64_t);
  struct Place;
  Place place_of(uint64_t hash) const;
  static bool has(const uint64_t* words, const Place& place);

  struct Free {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  const uint64_t lines_;
  using Words = std::unique_ptr<uint64_t[], Free>;
  Words allocate() const;
  Words words_;   // null: closed
  Words before_;  // what was recorded before the last turn(); null: nothing, or it is forgotten
  Owned owned_before_;
  uint64_t before_until_ns_ = 0;
  bool is_full_ = false;
  uint64_t until_ns_ = 0;
};

}  // namespace egret::backend
