// Walks over the items, or over those that were evicted, a page of records at a time (walk.cc).
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "op/op.h"
#include "store/items.h"
#include "store/upkeep/evictions.h"

namespace egret::store {

class Walker {
 public:
  Walker(Items& items, Evictions& evictions) : items_(items), evictions_(evictions) {}

  // The page of records that a kIterate op asks for. The result's value is valid until the next call.
  op::Result next_page(const op::Op& op);

 private:
  struct Found {
    uint64_t position;
    ItemRef ref;
  };
  uint64_t walk_items(uint64_t position, uint8_t size_class);
  uint64_t walk_bucket(uint64_t position, uint8_t size_class);

  Items& items_;
  Evictions& evictions_;
  std::vector<Found> found_;  // the items of the bucket that is being walked
  std::string page_;          // the records of the last page
};

}  // namespace egret::store
