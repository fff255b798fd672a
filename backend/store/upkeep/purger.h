// Removes items that are not this store's any more: after the members of its pool have changed, those whose keys were
// another member's. A cursor over the index's buckets (purge.cc); knows for which members it has been done.
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "store/items.h"

namespace egret::store {

class Purger {
 public:
  // Whether the item of this key stays.
  using Keeps = std::function<bool(std::string_view key)>;

  explicit Purger(Items& items) : items_(items) {}

  // From the next step() on removes all items stored before now that `keeps` refuses; null: all of them. When that is
  // done, membership() is `membership`. One that was under way ends unfinished.
  void start(Keeps keeps, uint64_t membership);
  bool is_under_way() const { return before_ != 0; }
  // Looks at items for about so many ns (work.h). False: nothing is under way.
  bool step(uint64_t most_ns);
  // The same as a step of its own, for who asks how far it is.
  void step_alone();
  uint64_t removed() const { return removed_; }

  // Removes the key's item if its version is smaller.
  void remove_older(std::string_view key, uint64_t hash, uint64_t version);
  // The version that the next change gets.
  uint64_t next_version() const { return items_.version; }

  // The members among which these items are this store's, as a number that means something to who sets it; 0: unknown.
  // A warm restart keeps it.
  uint64_t membership() const { return membership_; }
  void set_membership(uint64_t membership) { membership_ = membership; }

  static constexpr uint64_t kPassWork = 8'000;   // ns, of a step between two ops
  static constexpr uint64_t kIdleWork = 32'000;  // ns, of one in an idle moment

 private:
  bool purge_bucket();

  Items& items_;
  Keeps keeps_;
  uint64_t before_ = 0;  // items with this version or a later one stay; 0: nothing is under way
  uint32_t bucket_ = 0;  // the next one
  uint64_t membership_ = 0;
  uint64_t membership_then_ = 0;  // when it is done
  uint64_t removed_ = 0;
};

}  // namespace egret::store
