// The arena's pages of 64 KiB: what each is used for, which are free, and chunks of 4 KiB out of some of them.
//
//   page 0 .. fixed - 1   superblock, page table, directory of the index, ghosts
//   then                  free | index | log (small or main queue) | large (one part of one value) | chunks (16 parts)
//
// Everything a store keeps lies in such pages, so its limit is exact, and none is ever bound to one use or size of
// item. The table (32 bytes a page) is in the arena, too. Thread: the store's owner's.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"

namespace egret::store {

// Has the line of `at` fetched into the caches. The asm is for gcc: a function that only prefetches has no effect to
// it, and calls of it would be left out.
inline void prefetch_line(const void* at) {
  __builtin_prefetch(at);
  asm volatile("");
}

inline constexpr uint64_t kPageSize = 64u << 10;
inline constexpr uint64_t kChunkSize = 4u << 10;
inline constexpr uint32_t kChunksPerPage = kPageSize / kChunkSize;
inline constexpr uint64_t kUnit = 8;  // items are sized and placed in these
inline constexpr uint32_t kUnitsPerPage = kPageSize / kUnit;

using PageNumber = uint32_t;
inline constexpr PageNumber kNoPage = 0;  // page 0 is the superblock's

enum class PageUse : uint8_t { kFixed, kFree, kIndex, kSmall, kMain, kLarge, kChunks };
inline constexpr size_t kPageUses = 7;

// Lives in the arena. Which fields mean something depends on the use.
struct alignas(32) PageInfo {
  PageNumber next;      // free: the next free one. Log: the next younger one of its queue. Chunks: the next with room
  PageNumber previous;  // log, chunks
  PageNumber sparse_next;  // log: the list of pages worth compacting
  PageNumber sparse_previous;
  uint32_t used;  // log: units written. Chunks: a bit for each that is taken
  uint32_t live;  // log: units of what is alive
  PageUse use;
  bool is_sparse;  // log: on that list
  uint16_t pins;   // log: records that must stay where they are
};
static_assert(sizeof(PageInfo) == 32);

class Pages {
 public:
  // What a warm restart needs besides the table.
  struct State {
    PageNumber fresh;  // this one and all after it have never been used
    PageNumber free_head;
    uint32_t free_count;
    PageNumber chunks_head;  // pages with a chunk to spare
    uint32_t chunks_taken;
    std::array<uint32_t, kPageUses> counts;
  };

  // `table` has room for an entry a page. `fixed` pages are not to be given out. Goes on where another ended, of which
  // `kept` is the state; null: everything is new.
  Pages(std::byte* arena, PageInfo* table, PageNumber pages, PageNumber fixed, const State* kept);
  const State& state() const { return state_; }

  // A page for that use, its info cleared but for the use; its contents are whatever was there. kNoPage: none is free.
  PageNumber take(PageUse use);
  void give(PageNumber page);

  // --- Pages that are free and must stay so. They are known to the table as free ones. Withholding wants a free page;
  // taking back, a withheld one.
  PageNumber withhold();
  PageNumber first_withheld() const { return withheld_head_; }
  void take_back();
  uint32_t withheld() const { return withheld_; }
  // So many more, never used before, behind the last. The table must have room for them.
  void extend(PageNumber pages);

  // A chunk is named by the arena's bytes before it, in chunks. 0: there is neither a chunk nor a free page.
  uint64_t take_chunk();
  void give_chunk(uint64_t chunk);
  // Another chunk for what is in this one, in a page of which as much or more is taken. 0: it is well where it is.
  uint64_t take_denser_chunk(uint64_t chunk);
  // So many chunks are to spare that those taken had better be put together.
  bool wastes_chunks() const;

  PageInfo& info(PageNumber page) { return table_[page]; }
  const PageInfo& info(PageNumber page) const { return table_[page]; }
  std::byte* data(PageNumber page) const { return arena_ + page * kPageSize; }
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
