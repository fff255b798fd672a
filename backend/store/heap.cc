#include "store/heap.h"

#include <bit>

#include "base/check.h"

namespace egret::store {

namespace {
constexpr uint32_t kLinearUnits = 64;  // up to here every size has its class
constexpr uint32_t kSteps = 32;        // classes per power of two above

uint32_t highest_bit(uint32_t x) {
  return 31 - static_cast<uint32_t>(std::countl_zero(x));
}
}  // namespace

Heap::Heap(std::byte* arena, uint16_t* crossing, uint32_t begin, uint32_t end)
    : arena_(arena), crossing_(crossing), begin_(begin), top_(begin), end_(end), hand_(begin) {}

uint32_t Heap::rounded(uint64_t units) {
  EGRET_DCHECK(units < (uint64_t{1} << 31));
  const auto wanted = static_cast<uint32_t>(units);
  if (wanted <= kMinUnits) return kMinUnits;
  if (wanted < kLinearUnits) return wanted;
  const uint32_t step = 1u << (highest_bit(wanted) - 5);
  return (wanted + step - 1) & ~(step - 1);
}

uint32_t Heap::class_of(uint32_t units) {
  if (units < kLinearUnits) return units;
  const uint32_t power = highest_bit(units);
  return kLinearUnits + (power - 6) * kSteps + ((units >> (power - 5)) & (kSteps - 1));
}

uint32_t Heap::first_class_with_blocks(uint32_t from) const {
  const uint32_t word = from / 64;
  const uint64_t here = has_blocks_[word] & (~uint64_t{0} << (from % 64));
  if (here != 0) return word * 64 + static_cast<uint32_t>(std::countr_zero(here));
  const uint32_t later = word + 1 < 32 ? has_words_ & (~uint32_t{0} << (word + 1)) : 0;
  if (later == 0) return kClasses;
  const auto next = static_cast<uint32_t>(std::countr_zero(later));
  return next * 64 + static_cast<uint32_t>(std::countr_zero(has_blocks_[next]));
}

void Heap::insert_free(uint32_t unit, uint32_t units) {
  FreeBlock& block = free_block(unit);
  const uint32_t size_class = class_of(units);
  block.units = units;
  block.bits = kFree;
  block.previous = 0;
  block.next = heads_[size_class];
  if (block.next != 0) free_block(block.next).previous = unit;
  heads_[size_class] = unit;
  has_blocks_[size_class / 64] |= uint64_t{1} << (size_class % 64);
  has_words_ |= 1u << (size_class / 64);
  size_before(unit + units) = units;
  item({unit + units}).set_bits(kPreviousFree);
}

void Heap::remove_free(uint32_t unit) {
  const FreeBlock& block = free_block(unit);
  if (block.next != 0) free_block(block.next).previous = block.previous;
  if (block.previous != 0) {
    free_block(block.previous).next = block.next;
    return;
  }
  const uint32_t size_class = class_of(block.units);
  heads_[size_class] = block.next;
  if (block.next != 0) return;
  uint64_t& word = has_blocks_[size_class / 64];
  word &= ~(uint64_t{1} << (size_class % 64));
  if (word == 0) has_words_ &= ~(1u << (size_class / 64));
}

void Heap::note_start(uint32_t unit) {
  uint16_t& first = crossing_[unit / kGranuleUnits];
  const auto entry = static_cast<uint16_t>(unit % kGranuleUnits + 1);
  if (first == 0 || entry < first) first = entry;
}

void Heap::forget_start(uint32_t unit, uint32_t next) {
  uint16_t& first = crossing_[unit / kGranuleUnits];
  if (first != unit % kGranuleUnits + 1) return;
  const bool same_granule = next < top_ && next / kGranuleUnits == unit / kGranuleUnits;
  first = same_granule ? static_cast<uint16_t>(next % kGranuleUnits + 1) : uint16_t{0};
}

ItemRef Heap::allocate(uint32_t units) {
  EGRET_DCHECK(units == rounded(units));
  const uint32_t size_class = first_class_with_blocks(class_of(units));
  uint32_t unit = 0;
  uint32_t given = units;
  if (size_class == kClasses) {
    if (!has_wilderness(units)) return {};
    unit = top_;
    top_ += units;
    note_start(unit);
  } else {
    unit = heads_[size_class];
    const uint32_t whole = free_block(unit).units;
    remove_free(unit);
    if (whole - units >= kMinUnits) {
      note_start(unit + units);
      insert_free(unit + units, whole - units);
    } else {
      given = whole;
      item({unit + whole}).clear_bits(kPreviousFree);
    }
  }
  if (hand_ == unit) hand_ = unit + given;
  Item& block = item({unit});
  block.units = given;
  block.bits = 0;
  used_ += given;
  return {unit};
}

uint32_t Heap::release(ItemRef ref) {
  const Item& block = item(ref);
  EGRET_DCHECK(!block.has(kFree));
  uint32_t start = ref.unit;
  uint32_t units = block.units;
  used_ -= units;
  if (block.has(kPreviousFree)) {
    const uint32_t before = size_before(start);
    forget_start(start, start + units);
    if (hand_ == start) hand_ = start - before;
    start -= before;
    units += before;
    remove_free(start);
  }
  const uint32_t next = start + units;
  if (next < top_ && item({next}).has(kFree)) {
    const uint32_t after = free_block(next).units;
    remove_free(next);
    forget_start(next, next + after);
    if (hand_ == next) hand_ = start;
    units += after;
  }
  if (start + units == top_) {
    forget_start(start, top_);
    top_ = start;
    if (hand_ > top_) hand_ = top_;
  } else {
    insert_free(start, units);
  }
  return start;
}

void Heap::shrink(ItemRef ref, uint32_t units) {
  Item& block = item(ref);
  if (block.units < units + kMinUnits) return;
  const uint32_t rest = ref.unit + units;
  note_start(rest);
  item({rest}).units = block.units - units;
  item({rest}).bits = 0;
  block.units = units;
  release({rest});
}

bool Heap::lower_end() {
  if (end_ - begin_ < kGranuleUnits || top_ > end_ - kGranuleUnits) return false;
  end_ -= kGranuleUnits;
  return true;
}

ItemRef Heap::block_covering(uint32_t unit) const {
  EGRET_DCHECK(unit >= begin_ && unit < top_);
  uint32_t granule = unit / kGranuleUnits;
  auto first_start = [&] { return granule * kGranuleUnits + crossing_[granule] - 1; };
  while (crossing_[granule] == 0 || first_start() > unit) --granule;
  uint32_t start = first_start();
  while (start + item({start}).units <= unit) start += item({start}).units;
  return {start};
}

bool Heap::check(std::string* why) const {
  uint64_t used = 0;
  uint64_t free_blocks = 0;
  bool previous_free = false;
  bool hand_at_start = hand_ == top_;
  uint32_t unit = begin_;
  while (unit < top_) {
    const Item& block = item({unit});
    const std::string where = "block at unit " + std::to_string(unit);
    if (block.units < kMinUnits || block.units > top_ - unit) return *why = where + ": bad size", false;
    if (block.has(kPreviousFree) != previous_free) return *why = where + ": wrong kPreviousFree", false;
    const bool is_free = block.has(kFree);
    if (is_free && previous_free) return *why = where + ": two free neighbours", false;
    if (is_free && size_before(unit + block.units) != block.units) return *why = where + ": wrong closing size", false;
    is_free ? ++free_blocks : used += block.units;
    hand_at_start |= hand_ == unit;
    previous_free = is_free;
    unit += block.units;
  }
  if (unit != top_ || top_ > end_) return *why = "blocks do not tile the heap", false;
  if (previous_free) return *why = "a free block stands before the wilderness", false;
  if (!hand_at_start) return *why = "the hand stands inside a block", false;
  if (used != used_) return *why = "used units are miscounted", false;
  return check_lists(free_blocks, why) && check_crossing(why);
}

bool Heap::check_lists(uint64_t free_blocks, std::string* why) const {
  for (uint32_t size_class = 0; size_class < kClasses; ++size_class) {
    const bool marked = (has_blocks_[size_class / 64] >> (size_class % 64) & 1) != 0;
    if (marked != (heads_[size_class] != 0)) return *why = "a free list's mark is wrong", false;
    uint32_t previous = 0;
    for (uint32_t unit = heads_[size_class]; unit != 0; unit = free_block(unit).next) {
      const FreeBlock& block = free_block(unit);
      if ((block.bits & kFree) == 0 || block.previous != previous || class_of(block.units) != size_class ||
          free_blocks == 0) {
        return *why = "free list " + std::to_string(size_class) + " is broken", false;
      }
      --free_blocks;
      previous = unit;
    }
  }
  for (uint32_t word = 0; word < has_blocks_.size(); ++word) {
    if ((has_words_ >> word & 1) != (has_blocks_[word] != 0))
      return *why = "the mark of a word of marks is wrong", false;
  }
  return free_blocks == 0 || (*why = "a free block is on no list", false);
}

bool Heap::check_crossing(std::string* why) const {
  uint32_t unit = begin_;
  for (uint32_t granule = begin_ / kGranuleUnits; granule <= (end_ - 1) / kGranuleUnits; ++granule) {
    while (unit < top_ && unit / kGranuleUnits < granule) unit += item({unit}).units;
    const bool starts_here = unit < top_ && unit / kGranuleUnits == granule;
    if (crossing_[granule] != (starts_here ? unit % kGranuleUnits + 1 : 0)) {
      return *why = "the crossing map is wrong at granule " + std::to_string(granule), false;
    }
  }
  return true;
}

}  // namespace egret::store
