#include "store/memory/layout.h"

#include <algorithm>

#include "store/index/ghosts.h"

namespace egret::store {

namespace {
constexpr uint64_t kGhostShare = 64;  // 1/64 of the memory is for ghosts: about 0.6 ghosts for each item of 80 B
constexpr uint64_t kPerPage = sizeof(PageInfo) + sizeof(PageNumber);

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}
}  // namespace

Layout::Layout(PageNumber start_limit, PageNumber most_limit, uint64_t superblock)
    : start(start_limit), most(most_limit), table(rounded_up(superblock, 64)) {
  const uint64_t before_ghosts = rounded_up(table + start * kPerPage, Ghosts::kLine);
  const uint64_t wanted = before_ghosts + start * kPageSize / kGhostShare / Ghosts::kLine * Ghosts::kLine;
  fixed_of_start_ = static_cast<PageNumber>((wanted + kPageSize / 2) / kPageSize);
  fixed_of_start_ = std::max(fixed_of_start_, static_cast<PageNumber>(before_ghosts / kPageSize + 1));
  ghost_lines = (fixed_of_start_ * kPageSize - before_ghosts) / Ghosts::kLine;
  // Fixed pages that do not count have numbers, too: fewer than one for each 1,024 others.
  const uint64_t entries = most == start ? start : most + most / 1024 + 1;
  directory = table + entries * sizeof(PageInfo);
  ghosts = rounded_up(directory + entries * sizeof(PageNumber), Ghosts::kLine);
  fixed = static_cast<PageNumber>((ghosts + ghost_lines * Ghosts::kLine + kPageSize - 1) / kPageSize);
  pages = start + fixed - fixed_of_start_;
}

PageNumber Layout::fixed_of(PageNumber limit) const {
  const uint64_t added = limit > start ? (limit - start) * kPerPage : 0;
  return fixed_of_start_ + static_cast<PageNumber>((added + kPageSize - 1) / kPageSize);
}

}  // namespace egret::store
