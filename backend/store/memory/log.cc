#include "store/memory/log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace egret::store {

namespace {
constexpr int kSparseLookedAt = 8;  // sparse pages that are compared to find the one with the fewest live bytes
constexpr uint32_t kPinnedPassedOver = 128;
}  // namespace

Log::Log(std::byte* arena, Pages& pages, uint32_t sparse_percent, const State* kept)
    : arena_(arena), pages_(pages), sparse_percent_(sparse_percent), state_(kept != nullptr ? *kept : State{}) {}

bool Log::has_room(Queue queue, uint32_t units) const {
  const PageNumber head = this->queue(queue).head;
  return head != kNoPage && pages_.info(head).used + units <= kUnitsPerPage;
}

ItemRef Log::append(Queue queue, uint32_t units) {
  QueueState& at = state_.queues[static_cast<size_t>(queue)];
  if (!has_room(queue, units)) {
    if (pages_.free_count() == 0) return {};
    seal(queue);
    at.head = pages_.take(queue == Queue::kMain ? PageUse::kMain : PageUse::kSmall);
  }
  PageInfo& info = pages_.info(at.head);
  const ItemRef ref{uint64_t{at.head} * kUnitsPerPage + info.used};
  info.used += units;
  info.live += units;
  state_.live_units += units;
  at.weight += units * kUnit;
  return ref;
}

bool Log::seal(Queue queue) {
  QueueState& at = state_.queues[static_cast<size_t>(queue)];
  const PageNumber page = at.head;
  if (page == kNoPage || pages_.info(page).used == 0) return false;
  at.head = kNoPage;
  attach_youngest(page);
  after_death(page);
  return true;
}

void Log::kill(ItemRef ref) {
  Item& dead = item(ref);
  const uint32_t units = dead.units();
  dead.kill(units);
  pages_.info(ref.page()).live -= units;
  state_.live_units -= units;
  queue_state(ref).weight -= units * kUnit;
  after_death(ref.page());
}

void Log::shrink(ItemRef ref, uint32_t units) {
  const uint32_t before = item(ref).units();
  if (before == units) return;
  const ItemRef rest{ref.unit + units};
  item(rest).kill(before - units);
  pages_.info(ref.page()).live -= before - units;
  state_.live_units -= before - units;
  queue_state(ref).weight -= (before - units) * kUnit;
  after_death(ref.page());
}

void Log::after_death(PageNumber page) {
  PageInfo& info = pages_.info(page);
  if (page == draining_) return;
  if (is_head(page)) {
    if (info.live == 0) info.used = 0;
  } else if (info.live == 0) {
    unlink(page);
    pages_.give(page);
  } else if (!info.is_sparse && is_worth_compacting(info)) {
    link_sparse(page);
  }
}

uint32_t Log::oldest_access() const {
  uint32_t oldest = 0;
  for (const QueueState& at : state_.queues) {
    const PageNumber page = at.oldest != kNoPage ? at.oldest : at.head;
    if (page == kNoPage) continue;
    for (uint32_t unit = 0; unit < pages_.info(page).used;) {
      const Item& record = item({uint64_t{page} * kUnitsPerPage + unit});
      unit += record.units();
      if (record.is_dead()) continue;
      if (oldest == 0 || record.last_access() < oldest) oldest = record.last_access();
      break;
    }
  }
  return oldest;
}

void Log::pin(ItemRef ref) {
  if (ref.page() == draining_) stop_drain();
  ++pages_.info(ref.page()).pins;
}

// --- Queues

void Log::attach_youngest(PageNumber page) {
  PageInfo& info = pages_.info(page);
  QueueState& at = queue_state(page);
  info.previous = at.youngest;
  info.next = kNoPage;
  (at.youngest != kNoPage ? pages_.info(at.youngest).next : at.oldest) = page;
  at.youngest = page;
  ++at.sealed;
}

void Log::detach(PageNumber page) {
  const PageInfo& info = pages_.info(page);
  QueueState& at = queue_state(page);
  (info.previous != kNoPage ? pages_.info(info.previous).next : at.oldest) = info.next;
  (info.next != kNoPage ? pages_.info(info.next).previous : at.youngest) = info.previous;
  --at.sealed;
}

void Log::unlink(PageNumber page) {
  detach(page);
  if (pages_.info(page).is_sparse) unlink_sparse(page);
}

void Log::link_sparse(PageNumber page) {
  PageInfo& info = pages_.info(page);
  info.is_sparse = true;
  info.sparse_next = kNoPage;
  info.sparse_previous = state_.sparse_last;
  (state_.sparse_last != kNoPage ? pages_.info(state_.sparse_last).sparse_next : state_.sparse_first) = page;
  state_.sparse_last = page;
}

void Log::unlink_sparse(PageNumber page) {
  PageInfo& info = pages_.info(page);
  (info.sparse_previous != kNoPage ? pages_.info(info.sparse_previous).sparse_next : state_.sparse_first) =
      info.sparse_next;
  (info.sparse_next != kNoPage ? pages_.info(info.sparse_next).sparse_previous : state_.sparse_last) =
      info.sparse_previous;
  info.is_sparse = false;
}

// --- Draining

PageNumber Log::sparsest() {
  PageNumber best = kNoPage;
  PageNumber page = state_.sparse_first;
  for (int i = 0; i < kSparseLookedAt && page != kNoPage; ++i) {
    const PageInfo& info = pages_.info(page);
    const PageNumber next = info.sparse_next;
    if (info.pins > 0) {  // to the end of the list: others first
      unlink_sparse(page);
      link_sparse(page);
    } else if (best == kNoPage || info.live < pages_.info(best).live) {
      best = page;
    }
    page = next;
  }
  return best;
}

// Pinned pages found on the way become the youngest, so that the next call does not look at them again.
PageNumber Log::oldest(Queue queue, bool with_pins) {
  QueueState& at = state_.queues[static_cast<size_t>(queue)];
  for (uint32_t left = std::min(kPinnedPassedOver, at.sealed); left > 0; --left) {
    const PageNumber page = at.oldest;
    const PageInfo& info = pages_.info(page);
    if (info.pins == 0 || (with_pins && info.larges > info.pins)) return page;
    detach(page);
    attach_youngest(page);
  }
  return kNoPage;
}

void Log::begin_drain(PageNumber page) {
  EGRET_DCHECK(draining_ == kNoPage);
  unlink(page);
  draining_ = page;
}

void Log::stop_drain() {
  const PageNumber page = std::exchange(draining_, kNoPage);
  QueueState& at = queue_state(page);
  PageInfo& info = pages_.info(page);
  info.previous = kNoPage;
  info.next = at.oldest;
  (at.oldest != kNoPage ? pages_.info(at.oldest).previous : at.youngest) = page;
  at.oldest = page;
  ++at.sealed;
  after_death(page);
}

void Log::end_drain() {
  const PageNumber page = std::exchange(draining_, kNoPage);
  if (pages_.info(page).live == 0) return pages_.give(page);
  attach_youngest(page);
  after_death(page);
}

// --- The checker

bool Log::check_page(PageNumber page, std::string* why) const {
  const PageInfo& info = pages_.info(page);
  const std::string where = "page " + std::to_string(page);
  uint32_t live = 0;
  uint32_t at = 0;
  if (info.used > kUnitsPerPage) return *why = where + ": written beyond its end", false;
  while (at < info.used) {
    const Item& record = item({uint64_t{page} * kUnitsPerPage + at});
    const uint32_t units = record.units();
    if (units == 0 || units > info.used - at) return *why = where + ": a record of an impossible size", false;
    if (!record.is_dead()) live += units;
    at += units;
  }
  if (live != info.live) return *why = where + ": what is alive is miscounted", false;
  const bool should_be_sparse = !is_head(page) && page != draining_ && is_worth_compacting(info);
  if (should_be_sparse != info.is_sparse) return *why = where + ": wrongly on, or not on, the sparse list", false;
  if (live == 0 && info.used > 0 && page != draining_) return *why = where + ": kept though nothing is alive", false;
  return true;
}

bool Log::check(std::string* why) const {
  uint32_t pages = 0;
  uint32_t sparse = 0;
  uint64_t live = 0;
  for (PageNumber page = pages_.fixed(); page < pages_.size(); ++page) {
    const PageInfo& info = pages_.info(page);
    if (info.use != PageUse::kSmall && info.use != PageUse::kMain) continue;
    ++pages;
    live += info.live;
    sparse += info.is_sparse ? 1 : 0;
    if (!check_page(page, why)) return false;
  }
  if (live != state_.live_units) return *why = "what is alive is miscounted", false;
  uint32_t known = draining_ != kNoPage ? 1 : 0;
  for (const QueueState& at : state_.queues) {
    uint32_t sealed = 0;
    PageNumber previous = kNoPage;
    for (PageNumber page = at.oldest; page != kNoPage; page = pages_.info(page).next) {
      if (pages_.info(page).previous != previous || ++sealed > at.sealed) return *why = "a queue is broken", false;
      previous = page;
    }
    if (sealed != at.sealed || previous != at.youngest) return *why = "a queue is broken or miscounted", false;
    known += sealed + (at.head != kNoPage ? 1 : 0);
  }
  if (known != pages) return *why = "a page of the log is in no queue", false;
  PageNumber previous = kNoPage;
  for (PageNumber page = state_.sparse_first; page != kNoPage; page = pages_.info(page).sparse_next) {
    if (pages_.info(page).sparse_previous != previous || sparse-- == 0)
      return *why = "the sparse list is broken", false;
    previous = page;
  }
  return sparse == 0 || (*why = "a sparse page is not on the list", false);
}

}  // namespace egret::store
