// Set-up, the batch, and what all ops share.
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
constexpr int64_t kThirtyDays = 2'592'000;  // longer exptimes are points in time
constexpr PageNumber kMostGrowth = 16;      // times the limit at the start

constexpr uint32_t kIdleReclaim = 2048;  // units

constexpr uint64_t kLine = 64;
constexpr uint64_t kMostPrefetched = 2048;  // of an item
constexpr size_t kLookAhead = 3;            // ops

// Pages with less alive are compacted before anything is evicted. Where nothing may be, every dead byte is worth
// having.
uint32_t sparse_percent(const StoreConfig& config) {
  return config.evict ? 75 : 100;
}
}  // namespace

uint64_t least_memory(uint32_t item_size_max) {
  return std::max({kMinMemory, 2 * uint64_t{item_size_max}, kLeastPages * kPageSize + item_size_max});
}

std::string least_memory_text(uint32_t item_size_max) {
  return "items of up to " + base::size_text(item_size_max) + " need " + base::size_text(least_memory(item_size_max)) +
         ": twice that size, or that and " + base::size_text(kLeastPages * kPageSize) +
         " if it is more, and at least " + base::size_text(kMinMemory);
}

base::Expected<std::unique_ptr<Store>> Store::create(const StoreConfig& config) {
  EGRET_CHECK(config.clock != nullptr);
  EGRET_CHECK(config.cas_stride > 0 && config.cas_offset < config.cas_stride && config.first_version > 0);
  if (config.memory_limit < least_memory(config.item_size_max)) {
    return base::Status::error("a partition's memory of " + base::size_text(config.memory_limit) +
                               " is too small: " + least_memory_text(config.item_size_max));
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
      pages_(arena_.data(), reinterpret_cast<PageInfo*>(arena_.data() + layout.table), layout.pages, layout.fixed,
             kept != nullptr ? &kept->pages : nullptr),
      index_(arena_.data(), pages_, reinterpret_cast<PageNumber*>(arena_.data() + layout.directory), config.hash_seed,
             kept != nullptr ? &kept->index : nullptr),
      log_(arena_.data(), pages_, sparse_percent(config), kept != nullptr ? &kept->log : nullptr),
      ghosts_(arena_.data() + layout.ghosts, static_cast<uint32_t>(layout.ghost_lines)),
      version_(config.first_version),
      limit_(config.memory_limit),
      pages_counted_(layout.start),
      further_(std::make_unique<std::string_view[]>(kMaxExtents)) {
  choose_targets();
  if (kept != nullptr) {
    restore(*kept);
    now_ = static_cast<uint32_t>(config_.clock->unix_seconds());
  } else {
    begin_pass();
  }
  start_second_ = now_;
  owner_.release();
}

Store::~Store() {
  EGRET_DCHECK(pinned_bytes_ == 0 && upload_bytes_ == 0);
  if (arena_.is_file() && !is_untouched_) save();
}

void Store::begin_pass() {
  EGRET_ASSERT_OWNER(owner_);
  if (is_untouched_) mark_in_use();
  now_ = static_cast<uint32_t>(static_cast<uint64_t>(config_.clock->unix_seconds()) + moved_);
  if (flush_second_ != 0 && now_ >= flush_second_) fire_flush();
  if (evictions_.is_watched()) evictions_.forget_if_over(now_);
  sweep_some();
  adjust_some();
  end_step();
}

bool Store::move_clock(uint64_t seconds) {
  EGRET_ASSERT_OWNER(owner_);
  constexpr uint64_t kLastSecond = UINT32_MAX;
  if (seconds > kLastSecond - now_) return false;
  moved_ += seconds;
  begin_pass();
  return true;
}

bool Store::idle_step() {
  EGRET_ASSERT_OWNER(owner_);
  const bool swept = sweep_some();
  const bool adjusted = adjust_some();
  const bool reclaimed = pages_.free_count() < free_target_ && reclaim(kIdleReclaim) > 0;
  if (swept || adjusted || reclaimed) end_step();
  return swept || adjusted || reclaimed;
}

void Store::prepare(std::span<const op::Op> ops) {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(ops.size() <= kMaxBatch);
  batch_ = ops;
  index_.prefetch_buckets(ops, lookups_);
  for (const op::Op& op : ops) {
    if (op.code == op::OpCode::kSet) ghosts_.prefetch(op.hash);
  }
}

void Store::locate() {
  static_assert(kMaxBatch <= Index::kMostLookups);
  guessed_at_ = index_.changes();
  index_.guess_items(std::span(lookups_).first(batch_.size()));
}

// The head of a later op's item is here by now and says how long it is: the rest of it is fetched, too.
void Store::prefetch_value(size_t index) const {
  if (index >= batch_.size() || !lookups_[index].slot() || guessed_at_ != index_.changes()) return;
  const Item& it = item(lookups_[index].slot());
  const auto* const start = reinterpret_cast<const char*>(&it);
  const uint64_t length = std::min<uint64_t>(it.units() * kUnit, kMostPrefetched);
  for (uint64_t offset = kLine; offset < length; offset += kLine) prefetch_line(start + offset);
}

inline op::Result Store::perform(const op::Op& op) {
  EGRET_DCHECK(!is_untouched_);  // begin_pass() comes first
  if (op.code == op::OpCode::kFlush) return flush(op);
  if (op.key.empty() || op.key.size() > op::kMaxKeyLength) return answer(op::ResultCode::kInvalid);
  EGRET_DCHECK(op.hash == op::hash_key(op.key, config_.hash_seed));
  if (is_plain_get(op)) return plain_get(op);
  switch (op.code) {
    case op::OpCode::kGet:
      return get(op);
    case op::OpCode::kSet:
      return set(op, nullptr);
    case op::OpCode::kDelete:
      return erase(op);
    case op::OpCode::kArith:
      return arith(op);
    case op::OpCode::kChunk:
      return chunk(op);
    default:
      return answer(op::ResultCode::kUnsupported);
  }
}

void Store::end_step() {
  const uint64_t ns = work_.ns();
  if (ns <= 1'000) {
    ++counters_[StatId::kStepsUnder1us];
  } else {
    EGRET_DCHECK(work_.is_within_limit());
    ++counters_[ns <= 4'000    ? StatId::kStepsUnder4us
                : ns <= 16'000 ? StatId::kStepsUnder16us
                : ns <= 64'000 ? StatId::kStepsUnder64us
                               : StatId::kStepsOver64us];
  }
  work_.reset();
}

// What earlier ops have written is made up for before this one: the result of the last may view the log until now.
inline op::Result Store::dispatch(const op::Op& op) {
  if (debt_ != 0) pay_debt();
  const op::Result result = perform(op);
  end_step();
  return result;
}

// One function, so that a result is made where the caller wants it.
[[gnu::flatten]] op::Result Store::execute(size_t index) {
  EGRET_DCHECK(index < batch_.size());
  prefetch_value(index + kLookAhead);
  guess_ = lookups_[index].slot();
  return dispatch(batch_[index]);
}

op::Result Store::execute_one(const op::Op& op) {
  EGRET_ASSERT_OWNER(owner_);
  return dispatch(op);
}

// --- Finding, living and dying

void Store::remove_unseen(Slot slot, uint64_t hash) {
  if (is_flushed(item(slot))) {
    ++counters_[StatId::kGetFlushed];
  } else {
    ++counters_[StatId::kGetExpired];
    ++counters_[StatId::kExpired];
  }
  remove(slot, hash);
}

Slot Store::peek(std::string_view key, uint64_t hash) const {
  const Slot slot = index_.find(key, hash);
  return slot && is_live(item(slot)) ? slot : Slot{};
}

uint32_t Store::deadline_of(int64_t exptime) const {
  if (exptime == 0) return 0;
  if (exptime < 0) return 1;  // long past
  const int64_t deadline = exptime > kThirtyDays ? exptime : exptime + now_;
  return static_cast<uint32_t>(std::min<int64_t>(deadline, UINT32_MAX));
}

uint64_t Store::cas_of(const Item& item) const {
  return item.given_cas().value_or(item.version() * config_.cas_stride + config_.cas_offset);
}

void Store::count_in(const Item& item) {
  const uint64_t bytes = item_bytes(item);
  Counters::Class& its = counters_.classes[op::size_class_of(bytes)];
  ++its.number;
  its.bytes += bytes;
  ++counters_[StatId::kCurrItems];
  counters_[StatId::kBytes] += bytes;
}

void Store::count_out(const Item& item) {
  const uint64_t bytes = item_bytes(item);
  Counters::Class& its = counters_.classes[op::size_class_of(bytes)];
  --its.number;
  its.bytes -= bytes;
  --counters_[StatId::kCurrItems];
  counters_[StatId::kBytes] -= bytes;
}

void Store::set_expires(Slot slot, bool expires) {
  if (expires == slot.expires()) return;
  slot.set_expires(expires);
  if (expires && expiring_items_ == 0) sweep_second_ = now_;
  expiring_items_ += expires ? 1 : uint64_t(-1);
}

void Store::remove(Slot slot, uint64_t hash) {
  const ItemRef ref = slot.ref();
  set_expires(slot, false);
  index_.erase(hash, slot);
  drop(ref);
}

void Store::drop(ItemRef ref) {
  count_out(item(ref));
  if (item(ref).has(kPinned)) {
    find_pin(ref)->is_detached = true;
  } else {
    free_record(ref);
  }
}

void Store::free_record(ItemRef ref) {
  const Item& it = item(ref);
  if (it.has(kLarge)) {
    const LargeHead head = large_head(it);
    log_.take_weight(ref, head.chunks * kChunkSize);
    work_.extents(head.extents);
    free_extents(pages_, it);
  }
  log_.kill(ref);
}

}  // namespace egret::store
