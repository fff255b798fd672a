#include "store/index.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "op/hash.h"

namespace egret::store {

namespace {
// Items per bucket before it grows. At 0.8 of the slots about a fifth of the buckets overflow.
constexpr uint64_t kLoadNumerator = 28;
constexpr uint64_t kLoadDenominator = 5;
constexpr uint32_t kMaxLevel = 30;

void prefetch_block(const Item& item) {
  const auto* start = reinterpret_cast<const char*>(&item);
  __builtin_prefetch(start);
  __builtin_prefetch(start + 64);
}
}  // namespace

Index::Index(std::byte* arena, uint64_t arena_size, uint32_t* directory, uint64_t hash_seed)
    : arena_(arena), end_(arena + arena_size), directory_(directory), hash_seed_(hash_seed) {
  static_assert(1u << kFirstLevel == kLinesPerGranule);
  directory_[0] = 0;
}

uint64_t Index::hash_of(const Item& item) const {
  return op::hash_key(item.key(), hash_seed_);
}

uint32_t Index::level_of(uint32_t bucket) const {
  const bool is_split = bucket < split_ || bucket >= 1u << level_;
  return is_split ? level_ + 1 : level_;
}

bool Index::prefetch_item(uint64_t hash) const {
  const uint64_t tag = tag_of(hash);
  const Bucket& at = bucket_of(hash);
  if (const uint32_t found = matches(at, tag); found != 0) {
    prefetch_block(item(location(at.slots[std::countr_zero(found)])));
    return true;
  }
  if (at.overflow == kNoLine) return true;
  __builtin_prefetch(&overflow_of(at));
  return false;
}

void Index::prefetch_overflow_item(uint64_t hash) const {
  const uint64_t tag = tag_of(hash);
  const Bucket& at = overflow_of(bucket_of(hash));
  if (const uint32_t found = matches(at, tag); found != 0) {
    prefetch_block(item(location(at.slots[std::countr_zero(found)])));
  }
}

// --- Lines

bool Index::take_granule(uint32_t* granule) {
  if (used_granules_ == granules_) {
    wants_granule_ = true;
    return false;
  }
  *granule = used_granules_++;
  // The granule may have held items before.
  Bucket& lowest = line((*granule + 1) * kLinesPerGranule - 1);
  std::fill_n(&lowest, kLinesPerGranule, Bucket{});
  return true;
}

uint32_t Index::take_line() {
  if (free_line_ != kNoLine) {
    const uint32_t link = free_line_;
    free_line_ = line(link - 1).overflow;
    line(link - 1) = Bucket{};
    return link;
  }
  if (fresh_lines_ == 0) {
    uint32_t granule = 0;
    if (!take_granule(&granule)) return kNoLine;
    fresh_line_ = granule * kLinesPerGranule;
    fresh_lines_ = kLinesPerGranule;
  }
  --fresh_lines_;
  return ++fresh_line_;  // the link of the line before the increment
}

void Index::give_line(uint32_t link) {
  line(link - 1).overflow = free_line_;
  free_line_ = link;
}

// --- Slots

bool Index::insert(uint64_t hash, ItemRef ref) {
  const uint32_t number = bucket_number(hash);
  Bucket* at = &bucket(number);
  while (at->overflow != kNoLine) at = &overflow_of(*at);
  uint64_t* slot = std::find(at->slots, at->slots + kSlots, uint64_t{0});
  if (slot == at->slots + kSlots) {
    const uint32_t link = take_line();
    if (link == kNoLine) return false;
    ++overflow_lines_;
    at->overflow = link;
    slot = line(link - 1).slots;
  }
  *slot = make_slot(hash, level_of(number), ref);
  ++items_;
  return true;
}

uint64_t* Index::find_slot(uint64_t hash, ItemRef ref) const {
  Bucket* at = &bucket_of(hash);
  while (true) {
    for (uint64_t& slot : at->slots) {
      if (location(slot) == ref) return &slot;
    }
    EGRET_CHECK(at->overflow != kNoLine);
    at = &overflow_of(*at);
  }
}

void Index::erase(uint64_t hash, ItemRef ref) {
  uint64_t* hole = find_slot(hash, ref);
  Bucket* before = nullptr;
  Bucket* last = &bucket_of(hash);
  while (last->overflow != kNoLine) {
    before = last;
    last = &overflow_of(*last);
  }
  uint64_t* end = std::find(last->slots, last->slots + kSlots, uint64_t{0});
  *hole = end[-1];
  end[-1] = 0;
  --items_;
  if (before != nullptr && last->slots[0] == 0) {
    give_line(before->overflow);
    before->overflow = kNoLine;
    --overflow_lines_;
  }
}

void Index::replace(uint64_t hash, ItemRef ref, ItemRef with) {
  uint64_t* slot = find_slot(hash, ref);
  *slot = (*slot & ~kLocationMask) | with.unit;
}

// --- Growth

void Index::grow() {
  const uint64_t buckets = (uint64_t{1} << level_) + split_;
  if (items_ * kLoadDenominator < buckets * kLoadNumerator || level_ >= kMaxLevel) return;
  if (buckets % kLinesPerGranule == 0) {
    uint32_t granule = 0;
    if (!take_granule(&granule)) return;
    directory_[buckets / kLinesPerGranule] = granule;
  }
  split(split_);
  if (++split_ == 1u << level_) {
    ++level_;
    split_ = 0;
  }
}

void Index::append(Appender& to, uint64_t slot) {
  if (to.used == kSlots) {
    const uint32_t link = take_line();
    EGRET_DCHECK(link != kNoLine);
    ++overflow_lines_;
    to.bucket->overflow = link;
    to = {&line(link - 1)};
  }
  to.bucket->slots[to.used++] = slot;
}

// Deals the chain's slots over the two halves. Never needs more lines than it frees: when k slots have been dealt, the
// two chains together need at most as many overflow lines as those slots came from, and each was freed before its slots
// were dealt.
void Index::split(uint32_t from) {
  const uint32_t bit = level_;
  const bool refill = (bit + 1) % kHintBits == 0;  // the hint is used up: the next level's comes from the items
  Appender low{&bucket(from)};
  Appender high{&bucket(from + (1u << level_))};
  Bucket current = *low.bucket;
  *low.bucket = Bucket{};
  while (true) {
    const uint32_t next = current.overflow;
    for (uint64_t slot : current.slots) {
      if (slot == 0) break;
      const bool goes_high = (slot >> (40 + bit % kHintBits) & 1) != 0;
      if (refill) slot = make_slot(hash_of(item(location(slot))), bit + 1, location(slot));
      append(goes_high ? high : low, slot);
    }
    if (next == kNoLine) break;
    current = line(next - 1);
    give_line(next);
    --overflow_lines_;
  }
}

// --- The checker

bool Index::check_chain(uint32_t number, uint64_t* items, uint64_t* lines, std::string* why) const {
  const std::string where = "bucket " + std::to_string(number);
  std::vector<std::string_view> keys;
  bool ended = false;
  for (const Bucket* at = &bucket(number);; at = &overflow_of(*at)) {
    for (const uint64_t slot : at->slots) {
      if (slot == 0) {
        ended = true;
        continue;
      }
      if (ended) return *why = where + " has a hole", false;
      const Item& it = item(location(slot));
      if (it.has(kFree) || !it.has(kLinked)) return *why = where + " points to what is no item", false;
      const uint64_t hash = hash_of(it);
      if (bucket_number(hash) != number) return *why = where + " has an item of another bucket", false;
      if (make_slot(hash, level_of(number), location(slot)) != slot)
        return *why = where + " has a wrong tag or hint", false;
      if (std::find(keys.begin(), keys.end(), it.key()) != keys.end()) return *why = where + " has a key twice", false;
      keys.push_back(it.key());
    }
    if (at->overflow == kNoLine) break;
    if (ended) return *why = where + " goes on after its end", false;
    ++*lines;
  }
  *items += keys.size();
  return true;
}

bool Index::check(std::string* why) const {
  uint64_t items = 0;
  uint64_t lines = 0;
  const uint32_t buckets = (1u << level_) + split_;
  for (uint32_t number = 0; number < buckets; ++number) {
    if (!check_chain(number, &items, &lines, why)) return false;
  }
  if (items != items_) return *why = "the index miscounts its items", false;
  if (lines != overflow_lines_) return *why = "the index miscounts its overflow lines", false;
  uint64_t free_lines = fresh_lines_;
  for (uint32_t link = free_line_; link != kNoLine; link = line(link - 1).overflow) ++free_lines;
  const uint64_t bucket_granules = (uint64_t{buckets} + kLinesPerGranule - 1) / kLinesPerGranule;
  const uint64_t overflow_capacity = (used_granules_ - bucket_granules) * kLinesPerGranule;
  if (lines + free_lines != overflow_capacity) return *why = "the index has lost lines", false;
  return true;
}

}  // namespace egret::store
