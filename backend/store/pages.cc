#include "store/pages.h"

#include <cstring>

namespace egret::store {

namespace {
constexpr uint32_t kAllChunks = (1u << kChunksPerPage) - 1;
constexpr int kDenseChunks = 14;         // of a page: it is not worth emptying
constexpr uint32_t kChunksToSpare = 64;  // are never too many
constexpr int kDenserLookedAt = 8;
}  // namespace

Pages::Pages(std::byte* arena, PageInfo* table, PageNumber pages, PageNumber fixed, const State* kept)
    : arena_(arena), table_(table), pages_(pages), fixed_(fixed), state_(kept != nullptr ? *kept : State{}) {
  if (kept != nullptr) return;
  std::memset(static_cast<void*>(table), 0, sizeof(PageInfo) * pages);  // kFixed
  state_.fresh = fixed;
  state_.free_count = pages - fixed;
  counted(PageUse::kFixed) = fixed;
  counted(PageUse::kFree) = state_.free_count;
}

PageNumber Pages::take(PageUse use) {
  PageNumber page = state_.free_head;
  if (page != kNoPage) {
    state_.free_head = table_[page].next;
  } else if (state_.fresh < pages_) {
    page = state_.fresh++;
  } else {
    return kNoPage;
  }
  --state_.free_count;
  --counted(PageUse::kFree);
  ++counted(use);
  table_[page] = PageInfo{};
  table_[page].use = use;
  return page;
}

void Pages::give(PageNumber page) {
  EGRET_DCHECK(page >= fixed_ && page < state_.fresh && table_[page].use != PageUse::kFree);
  --counted(table_[page].use);
  ++counted(PageUse::kFree);
  ++state_.free_count;
  table_[page] = PageInfo{};
  table_[page].use = PageUse::kFree;
  table_[page].next = state_.free_head;
  state_.free_head = page;
}

// --- Chunks. A page with room is on the list, a full one is not, an empty one is given back.

void Pages::link_chunks(PageNumber page) {
  PageInfo& at = table_[page];
  at.previous = kNoPage;
  at.next = state_.chunks_head;
  if (at.next != kNoPage) table_[at.next].previous = page;
  state_.chunks_head = page;
}

void Pages::unlink_chunks(PageNumber page) {
  const PageInfo& at = table_[page];
  if (at.next != kNoPage) table_[at.next].previous = at.previous;
  (at.previous != kNoPage ? table_[at.previous].next : state_.chunks_head) = at.next;
}

uint64_t Pages::take_chunk() {
  PageNumber page = state_.chunks_head;
  if (page == kNoPage) {
    page = take(PageUse::kChunks);
    if (page == kNoPage) return 0;
    link_chunks(page);
  }
  return take_chunk_of(page);
}

uint64_t Pages::take_chunk_of(PageNumber page) {
  PageInfo& at = table_[page];
  const auto chunk = static_cast<uint32_t>(std::countr_one(at.used));
  at.used |= 1u << chunk;
  ++state_.chunks_taken;
  if (at.used == kAllChunks) unlink_chunks(page);
  return uint64_t{page} * kChunksPerPage + chunk;
}

void Pages::give_chunk(uint64_t chunk) {
  const auto page = static_cast<PageNumber>(chunk / kChunksPerPage);
  PageInfo& at = table_[page];
  const uint32_t bit = 1u << (chunk % kChunksPerPage);
  EGRET_DCHECK(at.use == PageUse::kChunks && (at.used & bit) != 0);
  if (at.used == kAllChunks) link_chunks(page);
  at.used &= ~bit;
  --state_.chunks_taken;
  if (at.used != 0) return;
  unlink_chunks(page);
  give(page);
}

bool Pages::wastes_chunks() const {
  const uint32_t all = count(PageUse::kChunks) * kChunksPerPage;
  const uint32_t spare = all - state_.chunks_taken;
  return spare > kChunksToSpare && spare > all / 8;
}

// From the emptier page to the fuller one, always: so that there are ever more full ones and empty ones.
uint64_t Pages::take_denser_chunk(uint64_t chunk) {
  const auto from = static_cast<PageNumber>(chunk / kChunksPerPage);
  int most = std::popcount(table_[from].used);
  if (most >= kDenseChunks) return 0;
  PageNumber best = kNoPage;
  PageNumber page = state_.chunks_head;
  for (int i = 0; i < kDenserLookedAt && page != kNoPage; ++i, page = table_[page].next) {
    const int taken = std::popcount(table_[page].used);
    if (page == from || taken < most) continue;
    most = taken;
    best = page;
  }
  return best != kNoPage ? take_chunk_of(best) : 0;
}

bool Pages::check(std::string* why) const {
  std::array<uint32_t, kPageUses> counts{};
  for (PageNumber page = 0; page < state_.fresh; ++page) {
    const auto use = static_cast<size_t>(table_[page].use);
    if (use >= kPageUses || (page < fixed_) != (table_[page].use == PageUse::kFixed))
      return *why = "page " + std::to_string(page) + " has a use it cannot have", false;
    ++counts[use];
  }
  counts[static_cast<size_t>(PageUse::kFree)] += pages_ - state_.fresh;
  if (counts != state_.counts) return *why = "pages are miscounted", false;
  uint32_t free = pages_ - state_.fresh;
  for (PageNumber page = state_.free_head; page != kNoPage; page = table_[page].next) {
    if (page >= state_.fresh || table_[page].use != PageUse::kFree || free >= pages_)
      return *why = "the list of free pages is broken", false;
    ++free;
  }
  if (free != state_.free_count || free != state_.counts[static_cast<size_t>(PageUse::kFree)])
    return *why = "a free page is on no list", false;
  uint32_t with_room = 0;
  uint32_t taken = 0;
  PageNumber previous = kNoPage;
  for (PageNumber page = state_.chunks_head; page != kNoPage; page = table_[page].next) {
    const PageInfo& at = table_[page];
    if (at.use != PageUse::kChunks || at.used == 0 || at.used >= kAllChunks || at.previous != previous ||
        ++with_room > pages_)
      return *why = "the list of pages with chunks is broken", false;
    previous = page;
  }
  for (PageNumber page = fixed_; page < state_.fresh; ++page) {
    if (table_[page].use != PageUse::kChunks) continue;
    if (table_[page].used != kAllChunks) --with_room;
    taken += static_cast<uint32_t>(std::popcount(table_[page].used));
  }
  if (taken != state_.chunks_taken) return *why = "chunks are miscounted", false;
  return with_room == 0 || (*why = "a page with chunks to spare is on no list", false);
}

}  // namespace egret::store
