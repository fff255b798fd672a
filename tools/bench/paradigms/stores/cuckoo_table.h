// Pilaf's table (paper 000, sections 3.3 and 3.4, figure 5): clients READ it, one server core changes it. Every key has
// three places, in all entries of one array; a key's text and value lie in an extent outside.
//
//   entries: │ E │ E │ … │  32 bytes each     extents: │ key │ value │   │ key │ value │ …   blocks of 2^n bytes
//              └ offset, size, CRC64 of the extent ──────▲
//
// An entry says the CRC64 of its extent and ends with its own, so a reader sees every mix of two states. A put plans its
// path first, then moves the path's last key first, so that a key is in one place or in two; then it writes the extent,
// then the entry. A reader may still miss a key that moves from a place it has not looked at yet to one that it has.
//
// Memory is the caller's: zeroed, and registered for remote READ. Made once; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench_paradigms/node.h"
#include "bench_paradigms/stores/buddy_allocator.h"
#include "bench_paradigms/stores/step_writer.h"

namespace egret::bench_paradigms {

// As it lies in memory. Its size is paper 001's, its order ours.
struct [[gnu::packed]] CuckooEntry {
  uint32_t offset = 0;  // of the extent
  uint32_t size = 0;    // of key and value
  uint16_t key_size = 0;
  uint8_t is_used = 0;
  uint8_t tag = 0;  // 8 bits of the key's hash
  uint64_t extent_crc = 0;
  uint32_t pad = 0;
  uint64_t crc = 0;  // of all before

  uint64_t right_crc() const;
  bool is_sound() const { return crc == right_crc(); }
};
static_assert(sizeof(CuckooEntry) == 32 && offsetof(CuckooEntry, crc) == 24);

inline constexpr uint32_t kCuckooWays = 3;
using CuckooPlaces = std::array<uint32_t, kCuckooWays>;
// Where a key of this hash may be, in the order in which readers look. Two of them may be the same.
CuckooPlaces cuckoo_places(uint64_t hash, uint32_t entries);
inline uint8_t cuckoo_tag(uint64_t hash) {
  return static_cast<uint8_t>(hash);  // the upper half says the partition
}

class CuckooTable {
 public:
  // What so many keys with items (key and value) of that size take. 0 keys: as for one.
  static uint32_t entries_for(uint32_t keys, double load);
  static uint32_t extent_bytes_for(uint32_t keys, uint32_t item_bytes);

  // Whole entries; extents below 4 GiB.
  CuckooTable(std::span<std::byte> entries, std::span<std::byte> extents, const Pause* pause);

  Outcome put(std::string_view key, std::string_view value);  // kDone, kFull
  Outcome erase(std::string_view key);                        // kDone, kMiss
  std::optional<std::string_view> get(std::string_view key) const;

  // What a reader meets that looks for this key now: entries, and extents that it has to READ.
  struct Walk {
    uint32_t entries = 0;
    uint32_t extents = 0;
  };
  Walk walk(std::string_view key, bool by_tag) const;

 private:
  static constexpr uint32_t kMostNodes = 1024;  // of a search for a path
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct SearchNode {
    uint32_t place;
    uint32_t parent;  // index of a node; kNone: a place of the key itself
  };
  CuckooEntry entry(uint32_t place) const;
  std::string_view key_at(uint32_t place) const;
  uint32_t find(std::string_view key, uint64_t hash) const;
  uint32_t search_path(uint64_t hash);
  void move_path(uint32_t last_node);
  void store(uint32_t place, CuckooEntry entry);

  std::span<std::byte> entries_;
  std::span<std::byte> extents_;
  uint32_t count_;
  StepWriter writer_;
  BuddyAllocator allocator_;
  std::vector<uint32_t> seen_;  // by place: the search that has been there
  uint32_t search_ = 0;
  std::array<SearchNode, kMostNodes> nodes_{};
};

}  // namespace egret::bench_paradigms
