// The sweep: a cursor over the index's buckets that removes expired and flushed items before somebody asks for them or
// their page is drained. One turn over all buckets takes kTurnSeconds or more; there is no turn while nothing can be
// expired or flushed. A slot says whether its item expires, so items without exptime are not read.
#include <algorithm>

#include "store/upkeep/sweeper.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr uint32_t kTurnSeconds = 20;
// For this long a flush leaves items in place, so that a get of one is counted as get_flushed.
constexpr uint32_t kFlushGraceSeconds = 2;
constexpr uint32_t kPassesPerTurn = kTurnSeconds * 200;  // begin_pass() comes every 5 ms at most
constexpr uint32_t kLeastBuckets = 16;
constexpr uint32_t kMostBuckets = 512;
constexpr uint32_t kAhead = 8;  // buckets
}  // namespace

bool Sweeper::step() {
  if (bucket_ == 0) {
    const bool flush_is_due = flush_unswept_ && items_.now >= flush_due_second_;
    const bool turn_is_due = items_.expiring > 0 && items_.now - turn_second_ >= kTurnSeconds;
    if (!flush_is_due && !turn_is_due) return false;
    turn_second_ = items_.now;
    sweeps_flushed_ = flush_is_due;
    if (flush_is_due) flush_unswept_ = false;
  }
  const uint32_t buckets = items_.index.bucket_count();
  const uint32_t count = std::clamp(buckets / kPassesPerTurn, kLeastBuckets, kMostBuckets);
  const uint32_t end = std::min(buckets, bucket_ + count);
  for (; bucket_ < end; ++bucket_) {
    if (bucket_ + kAhead < buckets) items_.index.prefetch_bucket(bucket_ + kAhead);
    sweep_bucket(bucket_);
  }
  items_.work.buckets(count);
  if (bucket_ >= buckets) {
    bucket_ = 0;
    sweeps_flushed_ = false;
    ++items_.counters[StatId::kSweeps];
  }
  return true;
}

uint32_t Sweeper::due_in_seconds() const {
  if (bucket_ != 0) return 0;
  uint32_t soonest = kNever;
  if (flush_unswept_) soonest = flush_due_second_ - std::min(items_.now, flush_due_second_);
  if (items_.expiring > 0) {
    const uint32_t since = items_.now - turn_second_;
    soonest = std::min(soonest, since < kTurnSeconds ? kTurnSeconds - since : 0);
  }
  return soonest;
}

void Sweeper::on_flush() {
  flush_unswept_ = true;
  flush_due_second_ = items_.now + kFlushGraceSeconds;
}

void Sweeper::on_no_room() {
  if (items_.expiring > 0) turn_second_ = 0;
  flush_due_second_ = 0;
}

void Sweeper::sweep_bucket(uint32_t number) {
  items_.index.visit_bucket(number, [this](Slot slot) {
    if (!slot.expires() && !sweeps_flushed_) return false;
    const Item& it = items_.item(slot);
    items_.work.records(1);
    if (!items_.is_expired(it) && !items_.is_flushed(it)) return false;
    reclaimer_.reclaim_dead(slot, items_.index.hash_of(it));
    return true;
  });
}

}  // namespace egret::store
