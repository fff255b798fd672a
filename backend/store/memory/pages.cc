#include "store/memory/pages.h"

#include <cstring>

namespace egret::store {

namespace {
constexpr uint32_t kAllChunks = (1u << kChunksPerPage) - 1;
constexpr int kDenseChunks = 14;         // a page with so many taken chunks (of 16) is not worth emptying
constexpr uint32_t kChunksToSpare = 64;  // up to so many free chunks never count as waste
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

// Pages used before come first: their memory is resident.
PageNumber Pages::pop_free() {
  if (state_.free_count == 0) return kNoPage;
  --state_.free_count;
  const PageNumber page = state_.free_head;
  if (page == kNoPage) return state_.fresh++;
  state_.free_head = table_[page].next;
  return page;
}

PageNumber Pages::take(PageUse use) {
  const PageNumber page = pop_free();
  if (page == kNoPage) return kNoPage;
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

PageNumber Pages::withhold() {
  const PageNumber page = pop_free();
  table_[page] = PageInfo{};
  table_[page].use = PageUse::kFree;
  table_[page].next = withheld_head_;
  withheld_head_ = page;
  ++withheld_;
  return page;
}

void Pages::take_back() {
  const PageNumber page = withheld_head_;
  withheld_head_ = table_[page].next;
  --withheld_;
  table_[page].next = state_.free_head;
  state_.free_head = page;
  ++state_.free_count;
}

void Pages::extend(PageNumber pages) {
  pages_ += pages;
  state_.free_count += pages;
  counted(PageUse::kFree) += pages;
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

// Always moves from an emptier page to a fuller one, so that the number of full and of empty pages grows.
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
  uint32_t withheld = 0;
  for (PageNumber page = withheld_head_; page != kNoPage; page = table_[page].next) {
    if (page >= state_.fresh || table_[page].use != PageUse::kFree || ++withheld > pages_)
      return *why = "the list of withheld pages is broken", false;
  }
  if (withheld != withheld_) return *why = "withheld pages are miscounted", false;
  if (free != state_.free_count || free + withheld != state_.counts[static_cast<size_t>(PageUse::kFree)])
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
