// The arena's pages of 64 KiB: what each is used for, which are free, and the chunks of 4 KiB that some are cut into.
//
//   page 0 .. fixed - 1   superblock, page table, directory of the index, ghosts
//   then                  free | index | log (small or main queue) | large (one part of one value) | chunks (16 parts)
//
// Everything in a store lies in such pages, so its limit is exact. A free page can take any use and any size of item.
// The page table (32 bytes a page) is in the arena, too. Thread: the store's owner's.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"

namespace egret::store {

// Prefetches the cache line of `at`. Without the asm, gcc drops calls of functions that only prefetch, as if they had
// no effect.
inline void prefetch_line(const void* at) {
  __builtin_prefetch(at);
  asm volatile("");
}

inline constexpr uint64_t kPageSize = 64u << 10;
inline constexpr uint64_t kChunkSize = 4u << 10;
inline constexpr uint32_t kChunksPerPage = kPageSize / kChunkSize;
inline constexpr uint64_t kUnit = 8;  // bytes: the unit of a record's size and place
inline constexpr uint32_t kUnitsPerPage = kPageSize / kUnit;

using PageNumber = uint32_t;
inline constexpr PageNumber kNoPage = 0;  // page 0 holds the superblock

enum class PageUse : uint8_t { kFixed, kFree, kIndex, kSmall, kMain, kLarge, kChunks };
inline constexpr size_t kPageUses = 7;

// An entry of the page table, in the arena. Its use says which fields are valid.
struct alignas(32) PageInfo {
  PageNumber next;      // free: the next free one. Log: the next younger one of its queue. Chunks: the next with room
  PageNumber previous;  // log, chunks
  PageNumber sparse_next;  // log: the list of pages worth compacting
  PageNumber sparse_previous;
  uint32_t used;  // log: units written. Chunks: one bit for each taken chunk
  uint32_t live;  // log: live units
  PageUse use;
  bool is_sparse;   // log: on that list
  uint16_t pins;    // log: number of records that must not move
  uint16_t larges;  // log: live records of large values, without those that 0.1.0 wrote
  uint8_t pin_use;  // log, with pins: the PinUse that is charged for the page
};
static_assert(sizeof(PageInfo) == 32);

class Pages {
 public:
  // What a warm restart needs besides the table.
  struct State {
    PageNumber fresh;  // this one and all after it have never been used
    PageNumber free_head;
    uint32_t free_count;
    PageNumber chunks_head;  // list of pages that have a free chunk
    uint32_t chunks_taken;
    std::array<uint32_t, kPageUses> counts;
  };

  // `table` has room for one entry per page. The first `fixed` pages are never given out. `kept`: the state to continue
  // from; null: all pages are new.
  Pages(std::byte* arena, PageInfo* table, PageNumber pages, PageNumber fixed, const State* kept);
  const State& state() const { return state_; }

  // Takes a page for that use. Its other info is cleared; its contents are undefined. kNoPage: none is free.
  PageNumber take(PageUse use);
  void give(PageNumber page);

  // --- Withheld pages: free, but not to be used. The table shows them as free. withhold() requires a free page,
  // take_back() a withheld one.
  PageNumber withhold();
  PageNumber first_withheld() const { return withheld_head_; }
  void take_back();
  uint32_t withheld() const { return withheld_; }
  // Adds so many unused pages at the end. The table must have room for them.
  void extend(PageNumber pages);

  // A chunk's number is its offset in the arena, in chunks. 0: neither a chunk nor a page is free.
  uint64_t take_chunk();
  void give_chunk(uint64_t chunk);
  // Takes another chunk to move this one's bytes to, in a page that is as full or fuller. 0: the chunk should stay.
  uint64_t take_denser_chunk(uint64_t chunk);
  // Whether so many chunks are free in pages of chunks that the taken ones should be moved together.
  bool wastes_chunks() const;

  PageInfo& info(PageNumber page) { return table_[page]; }
  const PageInfo& info(PageNumber page) const { return table_[page]; }
  std::byte* chunk_data(uint64_t chunk) const { return arena_ + chunk * kChunkSize; }
  uint32_t free_count() const { return state_.free_count; }
  uint32_t count(PageUse use) const { return state_.counts[static_cast<size_t>(use)]; }
  PageNumber size() const { return pages_; }
  PageNumber fixed() const { return fixed_; }
  bool check(std::string* why) const;

 private:
  uint32_t& counted(PageUse use) { return state_.counts[static_cast<size_t>(use)]; }
  PageNumber pop_free();
  void link_chunks(PageNumber page);
  void unlink_chunks(PageNumber page);
  uint64_t take_chunk_of(PageNumber page);

  std::byte* arena_;
  PageInfo* table_;
  PageNumber pages_;
  PageNumber fixed_;
  State state_;
  PageNumber withheld_head_ = kNoPage;
  uint32_t withheld_ = 0;
};

}  // namespace egret::store
