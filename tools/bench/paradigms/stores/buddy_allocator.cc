#include "bench_paradigms/stores/buddy_allocator.h"

#include <bit>

namespace egret::bench_paradigms {

namespace {

// The order of the smallest block for so many bytes.
uint32_t order_for(uint32_t bytes) {
  const uint32_t units = (bytes + BuddyAllocator::kSmallest - 1) / BuddyAllocator::kSmallest;
  return units <= 1 ? 0 : static_cast<uint32_t>(std::bit_width(units - 1));
}

}  // namespace

BuddyAllocator::BuddyAllocator(uint32_t bytes) : units_(bytes / kSmallest) {
  heads_.fill(kNone);
  const auto count = static_cast<uint32_t>(units_.size());
  for (uint32_t unit = 0; unit < count;) {
    uint32_t order = 0;  // the largest block that begins here: aligned to its size, and inside
    while (order + 1 < kOrders && unit % (2u << order) == 0 && unit + (2u << order) <= count) ++order;
    add(unit, order);
    free_units_ += 1u << order;
    unit += 1u << order;
  }
}

uint32_t BuddyAllocator::block_bytes(uint32_t bytes) {
  return kSmallest << order_for(bytes);
}

void BuddyAllocator::add(uint32_t unit, uint32_t order) {
  Unit& block = units_[unit];
  block = {.next = heads_[order], .previous = kNone, .order = static_cast<uint8_t>(order), .is_free = true};
  if (block.next != kNone) units_[block.next].previous = unit;
  heads_[order] = unit;
}

void BuddyAllocator::take_out(uint32_t unit) {
  Unit& block = units_[unit];
  if (block.previous == kNone) {
    heads_[block.order] = block.next;
  } else {
    units_[block.previous].next = block.next;
  }
  if (block.next != kNone) units_[block.next].previous = block.previous;
  block.is_free = false;
}

uint32_t BuddyAllocator::allocate(uint32_t bytes) {
  const uint32_t wanted = order_for(bytes);
  uint32_t order = wanted;
  while (order < kOrders && heads_[order] == kNone) ++order;
  if (order >= kOrders) return kNone;
  const uint32_t unit = heads_[order];
  take_out(unit);
  while (order > wanted) {
    --order;
    add(unit + (1u << order), order);
  }
  units_[unit].order = static_cast<uint8_t>(wanted);
  free_units_ -= 1u << wanted;
  return unit * kSmallest;
}

void BuddyAllocator::free(uint32_t offset) {
  uint32_t unit = offset / kSmallest;
  uint32_t order = units_[unit].order;
  free_units_ += 1u << order;
  while (order + 1 < kOrders) {
    const uint32_t buddy = unit ^ (1u << order);
    if (buddy >= units_.size() || !units_[buddy].is_free || units_[buddy].order != order) break;
    take_out(buddy);
    if (buddy < unit) unit = buddy;
    ++order;
  }
  add(unit, order);
}

}  // namespace egret::bench_paradigms
