// The sweep: a cursor over the index's buckets that takes out what is expired, or flushed, before anybody asks for it
// or its page's turn comes. A turn takes kTurnSeconds or more; there is none while nothing can be found. Slots say
// whether their item expires, so those that do not cost nothing.
#include <algorithm>

#include "store/store.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr uint32_t kTurnSeconds = 20;
// Who asks for an item right after a flush learns that it was flushed (get_flushed), not only that there is none.
constexpr uint32_t kFlushGraceSeconds = 2;
constexpr uint32_t kPassesPerTurn = kTurnSeconds * 200;  // begin_pass() comes every 5 ms at most
constexpr uint32_t kLeastBuckets = 16;
constexpr uint32_t kMostBuckets = 512;
constexpr uint32_t kAhead = 8;  // buckets
}  // namespace

// False: there is nothing to sweep at present.
bool Store::sweep_some() {
  if (sweep_at_ == 0) {
    const bool flush_is_due = flush_unswept_ && now_ >= flush_sweep_second_;
    const bool turn_is_due = expiring_items_ > 0 && now_ - sweep_second_ >= kTurnSeconds;
    if (!flush_is_due && !turn_is_due) return false;
    sweep_second_ = now_;
    sweeps_flushed_ = flush_is_due;
    if (flush_is_due) flush_unswept_ = false;
  }
  const uint32_t buckets = index_.bucket_count();
  const uint32_t count = std::clamp(buckets / kPassesPerTurn, kLeastBuckets, kMostBuckets);
  const uint32_t end = std::min(buckets, sweep_at_ + count);
  for (; sweep_at_ < end; ++sweep_at_) {
    if (sweep_at_ + kAhead < buckets) index_.prefetch_bucket(sweep_at_ + kAhead);
    sweep_bucket(sweep_at_);
  }
  work_.buckets(count);
  if (sweep_at_ >= buckets) {
    sweep_at_ = 0;
    sweeps_flushed_ = false;
    ++counters_[StatId::kSweeps];
  }
  return true;
}

uint32_t Store::upkeep_in_seconds() const {
  if (sweep_at_ != 0) return 0;
  uint32_t soonest = kNever;
  if (flush_unswept_) soonest = flush_sweep_second_ - std::min(now_, flush_sweep_second_);
  if (expiring_items_ > 0) {
    const uint32_t since = now_ - sweep_second_;
    soonest = std::min(soonest, since < kTurnSeconds ? kTurnSeconds - since : 0);
  }
  // One that fires in this second has done so when it is over.
  if (flush_second_ != 0) soonest = std::min(soonest, flush_second_ > now_ ? flush_second_ - now_ : 1);
  return soonest;
}

void Store::note_unswept_flush() {
  flush_unswept_ = true;
  flush_sweep_second_ = now_ + kFlushGraceSeconds;
}

void Store::sweep_bucket(uint32_t number) {
  index_.visit_bucket(number, [this](Slot slot) {
    if (!slot.expires() && !sweeps_flushed_) return false;
    const Item& it = item(slot);
    work_.records(1);
    if (!is_expired(it) && !is_flushed(it)) return false;
    reclaim_dead(slot, index_.hash_of(it));
    return true;
  });
}

}  // namespace egret::store
