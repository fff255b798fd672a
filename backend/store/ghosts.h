// Who was evicted not long ago: 16-bit fingerprints of keys in 64-byte lines, each line a ring of the 31 latest that
// belong there. One line is touched for a question or an entry; one question in 2,000 is answered wrongly with yes,
// which costs nothing but a place in the main queue. Lives in the arena. Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <cstring>

#include "store/pages.h"

namespace egret::store {

class Ghosts {
 public:
  static constexpr size_t kLine = 64;
  Ghosts(std::byte* at, uint32_t lines) : lines_(reinterpret_cast<Line*>(at)), count_(lines), used_(lines) {}

  // Remembers half as many as there are items, to as many. With more, what comes back is no news: it would fill the
  // main queue (measured with values of 200 B: a tenth more misses). Who is remembered when that changes is forgotten.
  void fit(uint64_t items) {
    while (used_ > 1 && used_ * kPrints > items) used_ /= 2;
    while (used_ * 2 <= count_ && used_ * 2 * kPrints <= items) used_ *= 2;
  }

  void prefetch(uint64_t hash) const { prefetch_line(&line(mixed(hash))); }
  void add(uint64_t hash) {
    Line& at = line(mixed(hash));
    at.prints[at.next] = print(mixed(hash));
    at.next = static_cast<uint16_t>((at.next + 1) % kPrints);
  }
  // Whether it is there; it is not any more.
  bool take(uint64_t hash) {
    Line& at = line(mixed(hash));
    const uint16_t wanted = print(mixed(hash));
    for (uint16_t& entry : at.prints) {
      if (entry == wanted) return entry = 0, true;
    }
    return false;
  }

 private:
  static constexpr size_t kPrints = 31;
  struct alignas(kLine) Line {
    uint16_t prints[kPrints];  // 0: none
    uint16_t next;
  };
  static_assert(sizeof(Line) == kLine);

  // The index uses the hash's bits as they are.
  static uint64_t mixed(uint64_t hash) { return hash * 0x9e3779b97f4a7c15u; }
  static uint16_t print(uint64_t mixed) {
    const auto bits = static_cast<uint16_t>(mixed >> 16);
    return bits != 0 ? bits : 1;
  }
  Line& line(uint64_t mixed) const { return lines_[(mixed >> 32) * used_ >> 32]; }

  Line* lines_;
  uint64_t count_;
  uint64_t used_;
};

}  // namespace egret::store
