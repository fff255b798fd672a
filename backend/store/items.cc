// Removing items, and counting what happened to them.
#include "store/items.h"

#include <algorithm>

#include "store/superblock.h"

namespace egret::store {

using op::StatId;

namespace {
// Pages with a smaller live share are compacted before anything is evicted. Without eviction any dead byte is worth
// reclaiming.
uint32_t sparse_percent(const StoreConfig& config) {
  return config.evict ? 75 : 100;
}
}  // namespace

Items::Items(const StoreConfig& config, std::byte* arena, const Layout& layout, const Superblock* kept)
    : pages(arena, reinterpret_cast<PageInfo*>(arena + layout.table), layout.pages, layout.fixed,
            kept != nullptr ? &kept->pages : nullptr),
      index(arena, pages, reinterpret_cast<PageNumber*>(arena + layout.directory), config.hash_seed,
            kept != nullptr ? &kept->index : nullptr),
      log(arena, pages, sparse_percent(config), kept != nullptr ? &kept->log : nullptr),
      cas_stride(config.cas_stride),
      cas_offset(config.cas_offset),
      version(config.first_version) {}

void Items::count_in(const Item& of) {
  const uint64_t bytes = item_bytes(of);
  Counters::Class& its = counters.classes[op::size_class_of(bytes)];
  ++its.number;
  its.bytes += bytes;
  ++counters[StatId::kCurrItems];
  counters[StatId::kBytes] += bytes;
}

void Items::count_out(const Item& of) {
  const uint64_t bytes = item_bytes(of);
  Counters::Class& its = counters.classes[op::size_class_of(bytes)];
  --its.number;
  its.bytes -= bytes;
  --counters[StatId::kCurrItems];
  counters[StatId::kBytes] -= bytes;
}

void Items::set_expires(Slot slot, bool expires) {
  if (expires == slot.expires()) return;
  slot.set_expires(expires);
  expiring += expires ? 1 : uint64_t(-1);
}

void Items::remove(Slot slot, uint64_t hash) {
  const ItemRef ref = slot.ref();
  set_expires(slot, false);
  index.erase(hash, slot);
  drop(ref);
}

void Items::drop(ItemRef ref) {
  count_out(item(ref));
  if (item(ref).has(kPinned)) {
    find_pin(ref)->is_detached = true;
  } else {
    free_record(ref);
  }
}

void Items::free_record(ItemRef ref) {
  const Item& it = item(ref);
  if (it.has(kLarge)) {
    const LargeHead head = large_head(it);
    log.count_large(ref, -static_cast<int64_t>(head.chunks * kChunkSize));
    work.extents(head.extents);
    free_extents(pages, it);
  }
  log.kill(ref);
}

op::RecordHead Items::record_of(const Item& of) const {
  op::RecordHead head{};
  head.cas = cas_of(of);
  head.exptime = of.exptime();
  head.last_access = of.last_access();
  head.seen = now;
  head.client_flags = of.client_flags();
  head.value_length = value_length(of);
  head.size_class = static_cast<uint8_t>(op::size_class_of(item_bytes(of)));
  if (of.has(kFetched)) head.marks |= op::kFetched;
  if (of.has(kStale)) head.marks |= op::kStale;
  if (of.has(kTokenSent)) head.marks |= op::kTokenSent;
  return head;
}

void Items::note_long_step() {
  EGRET_DCHECK(work.is_within_limit());
  const uint64_t ns = work.ns();
  long_work_ns += ns;
  ++counters[ns <= 4'000    ? StatId::kStepsUnder4us
             : ns <= 16'000 ? StatId::kStepsUnder16us
             : ns <= 64'000 ? StatId::kStepsUnder64us
                            : StatId::kStepsOver64us];
}

}  // namespace egret::store
