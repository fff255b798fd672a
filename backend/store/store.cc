// Set-up, the batch, and what all ops share.
#include "store/store.h"

#include <algorithm>

#include "base/text.h"
#include "op/hash.h"
#include "store/answer.h"

namespace egret::store {

namespace {
constexpr int64_t kThirtyDays = 2'592'000;  // longer exptimes are points in time

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}
}  // namespace

struct Store::Layout {
  uint64_t directory;  // byte offsets
  uint64_t crossing;
  uint64_t heap;
  uint64_t index;

  explicit Layout(uint64_t size) {
    const uint64_t granules = size / Index::kGranule;
    directory = kUnit;  // unit 0 is nothing
    crossing = directory + granules * sizeof(uint32_t);
    heap = rounded_up(crossing + granules * sizeof(uint16_t), 64);
    index = size - Index::kGranule;
  }
};

base::Expected<std::unique_ptr<Store>> Store::create(const StoreConfig& config) {
  EGRET_CHECK(config.clock != nullptr);
  EGRET_CHECK(config.cas_stride > 0 && config.cas_offset < config.cas_stride && config.first_version > 0);
  const uint64_t least = std::max(kMinMemory, 2 * uint64_t{config.item_size_max});
  if (config.memory_limit < least) {
    return base::Status::error("a partition's memory of " + base::size_text(config.memory_limit) +
                               " is too small: items of up to " + base::size_text(config.item_size_max) + " need " +
                               base::size_text(least));
  }
  if (config.memory_limit > kMaxArena) {
    return base::Status::error("a partition's memory of " + base::size_text(config.memory_limit) +
                               " is too large: at most " + base::size_text(kMaxArena) + "; use more partitions");
  }
  auto arena = Arena::reserve(config.memory_limit / Index::kGranule * Index::kGranule);
  if (!arena) return arena.status();
  const Layout layout(arena.value().size());
  return std::unique_ptr<Store>(new Store(config, std::move(arena.value()), layout));
}

Store::Store(const StoreConfig& config, Arena arena, const Layout& layout)
    : config_(config),
      arena_(std::move(arena)),
      heap_(arena_.data(), reinterpret_cast<uint16_t*>(arena_.data() + layout.crossing),
            static_cast<uint32_t>(layout.heap / kUnit), static_cast<uint32_t>(layout.index / kUnit)),
      index_(arena_.data(), arena_.size(), reinterpret_cast<uint32_t*>(arena_.data() + layout.directory),
             config.hash_seed),
      version_(config.first_version) {
  begin_pass();
  start_second_ = now_;
  owner_.release();
}

Store::~Store() {
  EGRET_DCHECK(pinned_bytes_ == 0 && upload_bytes_ == 0);
}

void Store::begin_pass() {
  EGRET_ASSERT_OWNER(owner_);
  now_ = static_cast<uint32_t>(config_.clock->unix_seconds());
  if (flush_second_ != 0 && now_ >= flush_second_) fire_flush();
}

void Store::prepare(std::span<const op::Op> ops) {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(ops.size() <= kMaxBatch);
  batch_ = ops;
  for (const op::Op& op : ops) index_.prefetch(op.hash);
}

void Store::locate() {
  uint32_t in_overflow = 0;
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (!index_.prefetch_item(batch_[i].hash)) in_overflow |= 1u << i;
  }
  for (; in_overflow != 0; in_overflow &= in_overflow - 1) {
    index_.prefetch_overflow_item(batch_[static_cast<size_t>(std::countr_zero(in_overflow))].hash);
  }
}

op::Result Store::execute(size_t index) {
  EGRET_DCHECK(index < batch_.size());
  return dispatch(batch_[index]);
}

op::Result Store::execute_one(const op::Op& op) {
  EGRET_ASSERT_OWNER(owner_);
  return dispatch(op);
}

op::Result Store::dispatch(const op::Op& op) {
  if (op.code == op::OpCode::kFlush) return flush(op);
  if (op.key.empty() || op.key.size() > op::kMaxKeyLength) return answer(op::ResultCode::kInvalid);
  EGRET_DCHECK(op.hash == op::hash_key(op.key, config_.hash_seed));
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

// --- Finding, living and dying

ItemRef Store::find(std::string_view key, uint64_t hash) {
  const ItemRef ref = index_.find(key, hash);
  if (!ref) return {};
  if (is_flushed(item(ref))) {
    ++counters_[op::StatId::kGetFlushed];
  } else if (is_expired(item(ref))) {
    ++counters_[op::StatId::kGetExpired];
  } else {
    return ref;
  }
  remove(ref, hash);
  return {};
}

ItemRef Store::peek(std::string_view key, uint64_t hash) const {
  const ItemRef ref = index_.find(key, hash);
  return ref && !is_flushed(item(ref)) && !is_expired(item(ref)) ? ref : ItemRef{};
}

uint32_t Store::deadline_of(int64_t exptime) const {
  if (exptime == 0) return 0;
  if (exptime < 0) return 1;  // long past
  const int64_t deadline = exptime > kThirtyDays ? exptime : exptime + now_;
  return static_cast<uint32_t>(std::min<int64_t>(deadline, UINT32_MAX));
}

void Store::remove(ItemRef ref, uint64_t hash) {
  index_.erase(hash, ref);
  drop(ref);
}

// The item is out of the index. Its block stays as long as it is pinned.
void Store::drop(ItemRef ref) {
  Item& it = item(ref);
  it.clear_bits(kLinked);
  --counters_[op::StatId::kCurrItems];
  counters_[op::StatId::kBytes] -= it.units * kUnit;
  if (it.pins == 0) heap_.release(ref);
}

// --- Statistics

void Store::append_stats(std::vector<op::StatRow>& rows) const {
  for (const op::StatInfo& info : op::stat_table()) {
    uint64_t value = counters_[info.id];
    switch (info.id) {
      case op::StatId::kUptime:
      case op::StatId::kPid:
      case op::StatId::kUserUsec:
      case op::StatId::kSystemUsec:
        continue;  // the process's, not the store's
      case op::StatId::kLimitMaxbytes:
        value = config_.memory_limit;
        break;
      case op::StatId::kItemSizeMax:
        value = config_.item_size_max;
        break;
      case op::StatId::kEvicts:
        value = config_.evict ? 1 : 0;
        break;
      default:
        break;
    }
    rows.push_back({static_cast<uint32_t>(info.id), 0, value});
  }
}

void Store::reset_stats() {
  counters_.reset();
}

uint64_t Store::memory_used() const {
  return heap_.begin() * kUnit + heap_.used_units() * kUnit + index_.bytes();
}

}  // namespace egret::store
