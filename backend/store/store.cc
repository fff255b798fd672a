// Set-up, batches, and helpers that all ops share.
#include "store/store.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "op/hash.h"
#include "store/answer.h"
#include "store/superblock.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr int64_t kThirtyDays = 2'592'000;  // seconds; a larger exptime is an absolute time
constexpr PageNumber kMostGrowth = 16;      // the limit may be raised to 16 times that at the start

constexpr uint32_t kIdleReclaim = 2048;  // units

constexpr uint64_t kLine = 64;
constexpr uint64_t kMostPrefetched = 2048;  // bytes of an item
constexpr size_t kLookAhead = 3;            // how many ops ahead values are prefetched
}  // namespace

uint64_t least_memory(uint32_t item_size_max) {
  return std::max({kMinMemory, 2 * uint64_t{item_size_max}, kLeastPages * kPageSize + item_size_max});
}

base::Expected<std::unique_ptr<Store>> Store::create(const StoreConfig& config) {
  EGRET_CHECK(config.clock != nullptr);
  EGRET_CHECK(config.cas_stride > 0 && config.cas_offset < config.cas_stride && config.first_version > 0);
  const uint64_t least = least_memory(config.item_size_max);
  if (config.memory_limit < least) {
    return base::Status::error("a partition's memory of " + base::size_text(config.memory_limit) +
                               " is too small: items of up to " + base::size_text(config.item_size_max) +
                               " need at least " + base::size_text(least));
  }
  if (config.memory_limit > kMaxMemory) {
    return base::Status::error("a partition's memory of " + base::size_text(config.memory_limit) +
                               " is too large: at most " + base::size_text(kMaxMemory) + "; use more partitions");
  }
  const auto start = static_cast<PageNumber>(config.memory_limit / kPageSize);
  const auto most = static_cast<PageNumber>(std::min<uint64_t>(uint64_t{start} * kMostGrowth, kMaxPages - 4096));
  const Layout fixed_size(start, start, sizeof(Superblock));
  const Layout growing(start, std::max(start, most), sizeof(Superblock));
  auto arena =
      Arena::reserve({.bytes = fixed_size.addresses(), .addresses = growing.addresses(), .path = config.warm_path});
  if (!arena) return arena.status();
  const Layout& layout = arena.value().size() == growing.addresses() ? growing : fixed_size;
  if (config.populate) {
    const base::Status populated =
        arena.value().populate({{{0, layout.table + start * sizeof(PageInfo)},
                                 {layout.directory, layout.directory + start * sizeof(PageNumber)},
                                 {layout.ghosts, layout.pages * kPageSize}}});
    if (!populated) return populated;
  }
  std::string why_empty;
  const Superblock* kept = nullptr;
  if (arena.value().is_file()) kept = open_file(config, arena.value(), layout, &why_empty);
  std::unique_ptr<Store> store(new Store(config, std::move(arena.value()), layout, kept));
  store->empty_because_ = std::move(why_empty);
  return store;
}

Store::Store(const StoreConfig& config, Arena arena, const Layout& layout, const Superblock* kept)
    : config_(config),
      layout_(layout),
      arena_(std::move(arena)),
      items_(config, arena_.data(), layout, kept),
      ghosts_(arena_.data() + layout.ghosts, static_cast<uint32_t>(layout.ghost_lines)),
      reclaimer_(items_, ghosts_, evictions_, config.evict),
      sweeper_(items_, reclaimer_),
      limit_(config_, layout_, arena_, items_, reclaimer_),
      walker_(items_, evictions_),
      purger_(items_),
      further_(std::make_unique<std::string_view[]>(kMaxExtents)) {
  if (kept != nullptr) {
    restore(*kept);
    items_.now = static_cast<uint32_t>(config_.clock->unix_seconds());
  } else {
    pass();
  }
  start_second_ = items_.now;
  owner_.release();
}

Store::~Store() {
  EGRET_DCHECK(items_.pins.empty() && upload_bytes_ == 0);
  if (arena_.is_file() && !is_untouched_) save();
}

void Store::pass() {
  EGRET_ASSERT_OWNER(owner_);
  if (is_untouched_) mark_in_use();
  items_.now = static_cast<uint32_t>(static_cast<uint64_t>(config_.clock->unix_seconds()) + moved_);
  if (flush_second_ != 0 && items_.now >= flush_second_) fire_flush();
  if (evictions_.is_watched()) evictions_.forget_if_over(items_.now);
  sweeper_.step();
  limit_.step();
  purger_.step(Purger::kPassWork);
  items_.end_step();
}

bool Store::move_clock(uint64_t seconds) {
  EGRET_ASSERT_OWNER(owner_);
  constexpr uint64_t kLastSecond = UINT32_MAX;
  if (seconds > kLastSecond - items_.now) return false;
  moved_ += seconds;
  pass();
  return true;
}

bool Store::idle_step() {
  EGRET_ASSERT_OWNER(owner_);
  const bool swept = sweeper_.step();
  const bool adjusted = limit_.step();
  const bool reclaimed = reclaimer_.needs_pages() && reclaimer_.reclaim(kIdleReclaim) > 0;
  const bool purged = !reclaimed && purger_.step(Purger::kIdleWork);
  const bool worked = swept || adjusted || reclaimed || purged;
  if (worked) items_.end_step();
  return worked;
}

uint32_t Store::upkeep_in_seconds() const {
  if (purger_.is_under_way()) return 0;
  const uint32_t sweep = sweeper_.due_in_seconds();
  if (flush_second_ == 0) return sweep;
  // A flush that fires in this second is over with the second.
  return std::min(sweep, flush_second_ > items_.now ? flush_second_ - items_.now : 1);
}

op::ResultCode Store::set_memory_limit(uint64_t bytes) {
  EGRET_ASSERT_OWNER(owner_);
  return limit_.set(bytes);
}

Store::Memory Store::memory() const {
  const uint64_t not_used = uint64_t{items_.pages.free_count()} + items_.pages.withheld() + limit_.uncounted_pages();
  return {.used = (items_.pages.size() - not_used) * kPageSize,
          .limit = limit_.bytes(),
          .least_limit = limit_.least(),
          .most_limit = limit_.most(),
          .upload_room = upload_room(),
          .pin_room = pin_budget(PinUse::kRead)};
}

void Store::prepare(std::span<const op::Op> ops) {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(ops.size() <= kMaxBatch);
  batch_ = ops;
  if (ops.size() == 1) {  // there is nothing that its cache misses could overlap with
    lookups_[0] = {};
    return;
  }
  items_.index.prefetch_buckets(ops, lookups_);
  for (const op::Op& op : ops) {
    if (op.code == op::OpCode::kSet) ghosts_.prefetch(op.hash);
  }
}

void Store::locate() {
  static_assert(kMaxBatch <= Index::kMostLookups);
  if (batch_.size() == 1) return;
  guessed_at_ = items_.index.changes();
  items_.index.guess_items(std::span(lookups_).first(batch_.size()));
}

// The head of a later op's item is in the cache by now and says how long the item is: prefetch the rest.
void Store::prefetch_value(size_t index) const {
  if (index >= batch_.size() || !lookups_[index].slot() || guessed_at_ != items_.index.changes()) return;
  const Item& it = items_.item(lookups_[index].slot());
  const auto* const start = reinterpret_cast<const char*>(&it);
  const uint64_t length = std::min<uint64_t>(it.units() * kUnit, kMostPrefetched);
  for (uint64_t offset = kLine; offset < length; offset += kLine) prefetch_line(start + offset);
}

inline op::Result Store::perform(const op::Op& op, Slot guess) {
  EGRET_DCHECK(!is_untouched_);  // begin_pass() must be called first
  if (op.code == op::OpCode::kFlush) return flush(op);
  if (op.key.empty() || op.key.size() > op::kMaxKeyLength)
    return op.code == op::OpCode::kIterate ? walker_.next_page(op) : answer(op::ResultCode::kInvalid);
  EGRET_DCHECK(op.hash == op::hash_key(op.key, config_.hash_seed));
  if (is_plain_get(op)) return plain_get(op, guess);
  switch (op.code) {
    case op::OpCode::kGet:
      return get(op, guess);
    case op::OpCode::kSet:
      return set(op, guess, nullptr);
    case op::OpCode::kDelete:
      return erase(op, guess);
    case op::OpCode::kArith:
      return arith(op, guess);
    case op::OpCode::kChunk:
      return chunk(op);
    default:
      return answer(op::ResultCode::kUnsupported);
  }
}

// First reclaims for what earlier ops wrote. That could not be done earlier: the last result may have viewed the log
// until now. `guess`: where the op's item may be.
inline op::Result Store::dispatch(const op::Op& op, Slot guess) {
  if (reclaimer_.owes()) reclaimer_.pay_debt();
  if (guessed_at_ != items_.index.changes()) guess = Slot{};
  const op::Result result = perform(op, guess);
  items_.end_step();
  return result;
}

// Flattened into one function, so that the compiler builds the result in the caller's place.
[[gnu::flatten]] op::Result Store::execute(size_t index) {
  EGRET_DCHECK(index < batch_.size());
  prefetch_value(index + kLookAhead);
  return dispatch(batch_[index], lookups_[index].slot());
}

// --- Finding

void Store::remove_unseen(Slot slot, uint64_t hash) {
  if (items_.is_flushed(items_.item(slot))) {
    ++items_.counters[StatId::kGetFlushed];
  } else {
    ++items_.counters[StatId::kGetExpired];
    ++items_.counters[StatId::kExpired];
  }
  items_.remove(slot, hash);
}

Slot Store::peek(std::string_view key, uint64_t hash) const {
  const Slot slot = items_.index.find(key, hash);
  return slot && items_.is_live(items_.item(slot)) ? slot : Slot{};
}

void Store::set_expires(Slot slot, bool expires) {
  if (expires && items_.expiring == 0) sweeper_.on_first_expiring();
  items_.set_expires(slot, expires);
}

uint32_t Store::deadline_of(int64_t exptime) const {
  if (exptime == 0) return 0;
  if (exptime < 0) return 1;  // expired long ago
  const int64_t deadline = exptime > kThirtyDays ? exptime : exptime + items_.now;
  return static_cast<uint32_t>(std::min<int64_t>(deadline, UINT32_MAX));
}

}  // namespace egret::store
