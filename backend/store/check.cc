// The checker: every invariant that holds between two calls. Reads the whole store.
#include <algorithm>
#include <vector>

#include "store/store.h"

namespace egret::store {

class Checker {
 public:
  explicit Checker(const Store& store) : store_(store), items_(store.items_) {}
  bool check(std::string* why) const;

 private:
  bool check_records(std::string* why) const;
  bool check_large(std::string* why) const;

  const Store& store_;
  const Items& items_;
};

bool check_invariants(const Store& store, std::string* why) {
  return Checker(store).check(why);
}

bool Checker::check(std::string* why) const {
  if (!items_.pages.check(why) || !items_.index.check(why) || !items_.log.check(why)) return false;
  if (!check_records(why) || !check_large(why)) return false;
  // After the limit was lowered, the store is over it until enough pages are withheld.
  const uint64_t allowed = store_.limit_.bytes() + uint64_t{store_.limit_.pages_over()} * kPageSize;
  if (store_.memory().used > allowed) return *why = "more memory is used than allowed", false;
  return true;
}

// Each live record is in the index or pinned, and the counters count each.
bool Checker::check_records(std::string* why) const {
  uint64_t items = 0;
  uint64_t bytes = 0;
  uint64_t expiring = 0;
  uint64_t detached = 0;
  std::array<uint64_t, 2> weights{};
  for (PageNumber page = items_.pages.fixed(); page < items_.pages.size(); ++page) {
    const PageInfo& info = items_.pages.info(page);
    if (info.use != PageUse::kSmall && info.use != PageUse::kMain) continue;
    uint32_t pins = 0;
    uint32_t larges = 0;
    for (uint32_t at = 0; at < info.used;) {
      const ItemRef ref{uint64_t{page} * kUnitsPerPage + at};
      const Item& it = items_.item(ref);
      at += it.units();
      if (it.is_dead()) continue;
      const std::string where = "the item at unit " + std::to_string(ref.unit);
      const PinEntry* const pin = items_.pins.find(ref);
      const bool is_pinned = pin != nullptr;
      if (it.has(kPinned) != is_pinned) return *why = where + ": pinned by nobody", false;
      pins += is_pinned ? 1 : 0;
      larges += it.has(kLarge) && large_head(it).chunks > 0 ? 1 : 0;
      weights[static_cast<size_t>(items_.log.queue_of(ref))] += item_bytes(it);
      const bool is_filed = bool{items_.index.find(ref, items_.index.hash_of(it))};
      const bool is_detached = is_pinned && pin->is_detached;
      if (is_filed == is_detached) return *why = where + ": alive, but not in the index, or the reverse", false;
      if (is_detached) {
        ++detached;
        continue;
      }
      ++items;
      bytes += item_bytes(it);
      expiring += it.exptime() != 0 ? 1 : 0;
    }
    // Fewer are right: 0.1.0 did not count those of its files.
    if (info.larges > larges) return *why = "page " + std::to_string(page) + ": large records are miscounted", false;
    if (pins != info.pins) return *why = "page " + std::to_string(page) + ": pins are miscounted", false;
  }
  using op::StatId;
  if (items != items_.index.state().items || items != items_.counters[StatId::kCurrItems])
    return *why = "items are miscounted", false;
  if (bytes != items_.counters[StatId::kBytes]) return *why = "bytes are miscounted", false;
  if (expiring != items_.expiring) return *why = "items that expire are miscounted", false;
  if (detached != items_.pins.count_detached()) return *why = "a detached version is gone", false;
  if (weights[0] != items_.log.queue(Queue::kSmall).weight || weights[1] != items_.log.queue(Queue::kMain).weight)
    return *why = "a queue's weight is miscounted", false;
  return true;
}

// Each chunk that a large item lists is marked taken and listed once. Each chunk marked taken belongs to an item or an
// upload.
bool Checker::check_large(std::string* why) const {
  std::vector<bool> listed(uint64_t{items_.pages.size()} * kChunksPerPage);
  uint64_t chunks = 0;
  for (PageNumber page = items_.pages.fixed(); page < items_.pages.size(); ++page) {
    const PageInfo& info = items_.pages.info(page);
    if (info.use != PageUse::kSmall && info.use != PageUse::kMain) continue;
    for (uint32_t at = 0; at < info.used;) {
      const Item& it = items_.item({uint64_t{page} * kUnitsPerPage + at});
      at += it.units();
      if (it.is_dead() || !it.has(kLarge)) continue;
      const std::string where = "the large item \"" + std::string(it.key()) + "\"";
      const LargeHead head = large_head(it);
      if (it.has(kPinned) && head.length == 0) continue;  // disowned
      uint32_t end = 0;
      uint32_t its_chunks = 0;
      for (uint32_t i = 0; i < head.extents; ++i) {
        const Extent extent = extent_of(it, i);
        const uint64_t chunk = first_chunk(extent);
        const PageInfo& of = items_.pages.info(static_cast<PageNumber>(chunk / kChunksPerPage));
        const bool is_page = of.use == PageUse::kLarge && chunk % kChunksPerPage == 0;
        const bool is_chunk = of.use == PageUse::kChunks && (of.used >> (chunk % kChunksPerPage) & 1) != 0;
        if (!is_page && !is_chunk) return *why = where + " lists what is not taken", false;
        if (listed[chunk]) return *why = where + " lists what another has", false;
        listed[chunk] = true;
        const uint32_t length = end_of(extent) - end;
        if (length == 0 || length > (is_page ? kPageSize : kChunkSize))
          return *why = where + " has a bad extent", false;
        end = end_of(extent);
        its_chunks += is_page ? kChunksPerPage : 1;
      }
      const uint64_t tail = it.inline_length() - sizeof head - head.extents * sizeof(Extent);
      if (end + tail != head.length || its_chunks != head.chunks) return *why = where + " is miscounted", false;
      chunks += its_chunks;
    }
  }
  uint64_t taken = 0;
  for (PageNumber page = items_.pages.fixed(); page < items_.pages.size(); ++page) {
    const PageInfo& info = items_.pages.info(page);
    if (info.use == PageUse::kLarge) taken += kChunksPerPage;
    if (info.use == PageUse::kChunks) taken += static_cast<uint64_t>(std::popcount(info.used));
  }
  if (taken != chunks + store_.upload_chunks_) return *why = "pages or chunks are taken by nobody", false;
  return true;
}

}  // namespace egret::store
