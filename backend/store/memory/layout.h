// The fixed parts of the arena.
//
//   [ Superblock | page table | directory of the index | ghosts ]  rounded up to whole pages, then the other pages
//
// If the limit may be raised later, table and directory have address space for the highest number of pages. Entries of
// pages that are not in use yet are never touched, so they take no memory and do not count.
#pragma once

#include <cstdint>

#include "store/memory/pages.h"

namespace egret::store {

// Pages that every store needs: one fixed, the index's first, two log heads, two for reclaiming, and two spare.
inline constexpr uint64_t kLeastPages = 8;
inline constexpr PageNumber kMaxPages = 1u << 22;  // 256 GiB: what 32-bit numbers of 64-byte lines reach

struct Layout {
  // For a limit of `start_limit` pages that may be raised to `most_limit`, and a superblock of `superblock` bytes.
  Layout(PageNumber start_limit, PageNumber most_limit, uint64_t superblock);

  PageNumber start;
  PageNumber most;
  PageNumber pages;  // numbers below this are in use at the start
  PageNumber fixed;  // numbers below this are fixed pages
  uint64_t table;    // byte offsets
  uint64_t directory;
  uint64_t ghosts;
  uint64_t ghost_lines;

  // How many fixed pages count under a limit of `limit` pages.
  PageNumber fixed_of(PageNumber limit) const;
  // Bytes of addresses for a limit of `most`.
  uint64_t addresses() const { return (uint64_t{most} + fixed - fixed_of(most)) * kPageSize; }

 private:
  PageNumber fixed_of_start_;
};

}  // namespace egret::store
