// The records that are pinned (pins.cc), found by their place. Entries stay where they are until they are removed.
//
// Thread: the store's. Memory: of an entry that is removed it is kept for the next.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/memory/item.h"
#include "store/memory/pages.h"

namespace egret::store {

// Who has a record pinned, and so whose share of memory it takes.
enum class PinUse : uint8_t {
  kRead,  // somebody reads it piece by piece: 1/8 of the limit, or one item of item_size_max
  kLend,  // somebody of this process sends it: 1/4 to 1/2 of the limit, as uploads leave it
};
inline constexpr size_t kPinUses = 2;

// A record that is neither moved nor overwritten while somebody reads it.
struct PinEntry {
  uint32_t count = 0;
  uint64_t bytes = 0;          // charged
  PinUse use = PinUse::kRead;  // who is charged for it: kLend, as soon as it is lent
  bool is_detached = false;    // out of the index: freed when its last pin ends
};

class PinTable {
 public:
  // Null: it is not pinned.
  PinEntry* find(ItemRef ref) {
    const auto at = entries_.find(ref.unit);
    return at == entries_.end() ? nullptr : &at->second;
  }
  const PinEntry* find(ItemRef ref) const { return const_cast<PinTable*>(this)->find(ref); }
  // It is not pinned so far.
  PinEntry& add(ItemRef ref, PinUse use, uint64_t bytes) {
    charged_[static_cast<size_t>(use)] += bytes;
    Entries::node_type node = spare_.empty() ? new_node() : std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
    node.key() = ref.unit;
    node.mapped() = {.bytes = bytes, .use = use};
    return entries_.insert(std::move(node)).position->second;
  }
  void remove(ItemRef ref) {
    Entries::node_type node = entries_.extract(ref.unit);
    charged_[static_cast<size_t>(node.mapped().use)] -= node.mapped().bytes;
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  }
  // From now on the entry takes its bytes of that share.
  void recharge(PinEntry& entry, PinUse use) {
    charged_[static_cast<size_t>(entry.use)] -= entry.bytes;
    entry.use = use;
    charged_[static_cast<size_t>(use)] += entry.bytes;
  }
  // A page with pins is charged, too, from its first pin to its last: to kLend once one of them was kLend.
  void charge_page(PageInfo& info, PinUse use) {
    if (info.pins > 0) uncharge_page(info);
    info.pin_use = static_cast<uint8_t>(use);
    charged_[info.pin_use] += kPageSize;
  }
  void uncharge_page(const PageInfo& info) { charged_[info.pin_use] -= kPageSize; }
  // Bytes that its entries and their pages take of that share.
  uint64_t charged(PinUse use) const { return charged_[static_cast<size_t>(use)]; }
  bool empty() const { return entries_.empty(); }
  uint64_t count_detached() const {
    uint64_t count = 0;
    for (const auto& [unit, entry] : entries_) count += entry.is_detached ? 1 : 0;
    return count;
  }

 private:
  using Entries = std::unordered_map<uint64_t, PinEntry>;
  static constexpr size_t kMostSpare = 1024;

  static Entries::node_type new_node() {
    Entries one{{0, {}}};
    return one.extract(one.begin());
  }

  Entries entries_;  // by ItemRef::unit
  std::vector<Entries::node_type> spare_;
  std::array<uint64_t, kPinUses> charged_{};
};

}  // namespace egret::store
