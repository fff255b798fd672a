// The checker: what must hold between any two ops.
#include "store/store.h"

namespace egret::store {

bool Store::check_invariants(std::string* why) const {
  if (!heap_.check(why) || !index_.check(why)) return false;
  uint64_t items = 0;
  uint64_t item_bytes = 0;
  uint64_t pinned_bytes = 0;
  uint64_t upload_bytes = 0;
  for (uint32_t unit = heap_.begin(); unit < heap_.top(); unit += item({unit}).units) {
    const Item& it = item({unit});
    if (it.has(kFree)) continue;
    const std::string where = "item at unit " + std::to_string(unit);
    const uint64_t bytes = it.units * kUnit;
    if (item_units(it.key_length, it.has(kHasFlags), it.value_length) > it.units)
      return *why = where + ": larger than its block", false;
    if (it.pins != 0) pinned_bytes += bytes;
    if (it.has(kLinked)) {
      if (index_.find(it.key(), index_.hash_of(it)) != ItemRef{unit})
        return *why = where + ": not found under its key", false;
      if (it.version >= version_) return *why = where + ": a version from the future", false;
      ++items;
      item_bytes += bytes;
    } else if (it.pins == 0) {
      upload_bytes += bytes;
    }
  }
  if (items != index_.item_count() || items != item_count()) return *why = "items are miscounted", false;
  if (item_bytes != counters_[op::StatId::kBytes]) return *why = "item bytes are miscounted", false;
  if (pinned_bytes != pinned_bytes_) return *why = "pinned bytes are miscounted", false;
  if (upload_bytes != upload_bytes_) return *why = "upload bytes are miscounted", false;
  if (heap_.end() * kUnit + index_.bytes() != arena_.size()) return *why = "heap and index do not meet", false;
  return memory_used() <= config_.memory_limit || (*why = "over the memory limit", false);
}

}  // namespace egret::store
