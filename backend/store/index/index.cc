#include "store/index/index.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "op/hash.h"

namespace egret::store {

namespace {
// Items per bucket at which the index grows. At a load of 0.82 about a fifth of the buckets overflow.
constexpr uint64_t kLoadNumerator = 23;
constexpr uint64_t kLoadDenominator = 4;
constexpr uint32_t kMaxLevel = 30;

// Prefetches an item's head, key and, if it is short, value: always two lines, since their number cannot be predicted.
void prefetch_head(const std::byte* item) {
  prefetch_line(item);
  prefetch_line(item + 63);
}
}  // namespace

Index::Index(std::byte* arena, Pages& pages, PageNumber* directory, uint64_t hash_seed, const State* kept)
    : arena_(arena),
      pages_(pages),
      directory_(directory),
      hash_seed_(hash_seed),
      state_(kept != nullptr ? *kept : State{}) {
  static_assert(1u << kFirstLevel == kLinesPerPage);
  if (kept != nullptr) return;
  state_.level = kFirstLevel;
  directory_[0] = take_page();
  EGRET_CHECK(directory_[0] != kNoPage);
}

uint64_t Index::hash_of(const Item& item) const {
  return op::hash_key(item.key(), hash_seed_);
}

uint32_t Index::level_of(uint32_t bucket) const {
  const bool is_split = bucket < state_.split || bucket >= 1u << state_.level;
  return is_split ? state_.level + 1 : state_.level;
}

// These loops only prefetch. A prefetch may wait for address translation; with other work between the prefetches, fewer
// of them would run at the same time.
void Index::prefetch_buckets(std::span<const op::Op> ops, std::span<Lookup> lookups) const {
  for (size_t i = 0; i < ops.size(); ++i) {
    Bucket& bucket = bucket_of(ops[i].hash);
    lookups[i] = Lookup(bucket, tag_of(ops[i].hash), record({}));
  }
  for (size_t i = 0; i < ops.size(); ++i) prefetch_line(lookups[i].bucket_);
}

void Index::guess_items(std::span<Lookup> lookups) const {
  uint32_t in_overflow = 0;
  for (size_t i = 0; i < lookups.size(); ++i) {
    Lookup& at = lookups[i];
    at.slot_ = match(*at.bucket_, at.tag_);
    if (at.slot_) {
      at.record_ = record(at.slot_.ref());
    } else if (at.bucket_->overflow != kNoLine) {
      prefetch_line(&line(at.bucket_->overflow));
      in_overflow |= 1u << i;
    }
  }
  for (const Lookup& at : lookups) prefetch_head(at.record_);
  for (; in_overflow != 0; in_overflow &= in_overflow - 1) {
    Lookup& at = lookups[static_cast<size_t>(std::countr_zero(in_overflow))];
    at.slot_ = match(line(at.bucket_->overflow), at.tag_);
    if (at.slot_) prefetch_head(record(at.slot_.ref()));
  }
}

void Index::prefetch_items(uint32_t number) const {
  for (const uint64_t slot : bucket(number).slots) {
    if (slot != 0) prefetch_head(record(location(slot)));
  }
}

uint64_t Index::position_of(uint64_t hash) {
  const auto swap = [&](uint64_t mask, int by) { hash = (hash >> by & mask) | (hash & mask) << by; };
  swap(0x5555'5555'5555'5555, 1);
  swap(0x3333'3333'3333'3333, 2);
  swap(0x0f0f'0f0f'0f0f'0f0f, 4);
  return __builtin_bswap64(hash);
}

// --- Lines

PageNumber Index::take_page() {
  const PageNumber page = pages_.take(PageUse::kIndex);
  if (page != kNoPage) std::fill_n(&line(page * kLinesPerPage), kLinesPerPage, Bucket{});
  return page;
}

uint32_t Index::take_line() {
  if (state_.free_line != kNoLine) {
    const uint32_t number = state_.free_line;
    state_.free_line = line(number).overflow;
    line(number) = Bucket{};
    return number;
  }
  if (state_.fresh_lines == 0) {
    const PageNumber page = take_page();
    if (page == kNoPage) return kNoLine;
    state_.fresh_line = page * kLinesPerPage;
    state_.fresh_lines = kLinesPerPage;
  }
  --state_.fresh_lines;
  return state_.fresh_line++;
}

void Index::give_line(uint32_t number) {
  line(number).overflow = state_.free_line;
  state_.free_line = number;
}

// --- Slots

Slot Index::find(std::string_view key, uint64_t hash) const {
  const uint32_t tag = tag_of(hash);
  Bucket* at = &bucket_of(hash);
  while (true) {
    for (uint32_t found = matches(*at, tag); found != 0; found &= found - 1) {
      uint64_t* const slot = at->slots + std::countr_zero(found);
      if (item(location(*slot)).has_key(key)) return Slot(slot);
    }
    if (at->overflow == kNoLine) return {};
    at = &line(at->overflow);
  }
}

Slot Index::find(ItemRef ref, uint64_t hash) const {
  Bucket* at = &bucket_of(hash);
  while (true) {
    for (uint64_t& slot : at->slots) {
      if (location(slot) == ref) return Slot(&slot);
    }
    if (at->overflow == kNoLine) return {};
    at = &line(at->overflow);
  }
}

Slot Index::insert(uint64_t hash, ItemRef ref) {
  const uint32_t number = bucket_number(hash);
  Bucket* at = &bucket(number);
  while (at->overflow != kNoLine) at = &line(at->overflow);
  uint64_t* slot = std::find(at->slots, at->slots + kSlots, uint64_t{0});
  if (slot == at->slots + kSlots) {
    const uint32_t added = take_line();
    EGRET_CHECK(added != kNoLine);
    ++state_.overflow_lines;
    at->overflow = added;
    slot = line(added).slots;
  }
  ++changes_;
  *slot = tag_and_hint(hash, level_of(number)) | ref.unit;
  ++state_.items;
  return Slot(slot);
}

void Index::erase(uint64_t hash, Slot slot) {
  ++changes_;
  Bucket* before = nullptr;
  Bucket* last = &bucket_of(hash);
  while (last->overflow != kNoLine) {
    before = last;
    last = &line(last->overflow);
  }
  uint64_t* end = std::find(last->slots, last->slots + kSlots, uint64_t{0});
  *slot.at_ = end[-1];
  end[-1] = 0;
  --state_.items;
  if (before != nullptr && last->slots[0] == 0) {
    give_line(before->overflow);
    before->overflow = kNoLine;
    --state_.overflow_lines;
  }
}

// --- Growth

void Index::grow(uint32_t reserve) {
  const uint64_t buckets = bucket_count();
  if (state_.items * kLoadDenominator < buckets * kLoadNumerator || state_.level >= kMaxLevel) return;
  if (buckets % kLinesPerPage == 0) {
    if (pages_.free_count() <= reserve) return;
    directory_[buckets / kLinesPerPage] = take_page();
  }
  ++changes_;
  split(state_.split);
  if (++state_.split == 1u << state_.level) {
    ++state_.level;
    state_.split = 0;
  }
}

void Index::append(Appender& to, uint64_t slot) {
  if (to.used == kSlots) {
    const uint32_t added = take_line();
    EGRET_DCHECK(added != kNoLine);
    ++state_.overflow_lines;
    to.bucket->overflow = added;
    to = {&line(added)};
  }
  to.bucket->slots[to.used++] = slot;
}

// Distributes the chain's slots over the two buckets. Needs no more lines than it frees: each old line is freed before
// its slots are appended, and the k slots appended so far need at most as many overflow lines as they came from.
void Index::split(uint32_t from) {
  const uint32_t bit = state_.level;
  const bool refill = hint_base(bit + 1) == bit + 1;  // the hint's bits are used up: read new ones from the items
  const uint32_t shift = Slot::kHintShift + bit - hint_base(bit);
  Appender low{&bucket(from)};
  Appender high{&bucket(from + (1u << bit))};
  Bucket current = *low.bucket;
  *low.bucket = Bucket{};
  while (true) {
    const uint32_t next = current.overflow;
    for (uint64_t slot : current.slots) {
      if (slot == 0) break;
      const bool goes_high = (slot >> shift & 1) != 0;
      if (refill) slot = (slot & kKeptBySplit) | tag_and_hint(hash_of(item(location(slot))), bit + 1);
      append(goes_high ? high : low, slot);
    }
    if (next == kNoLine) break;
    current = line(next);
    give_line(next);
    --state_.overflow_lines;
  }
}

// --- The checker

bool Index::check_chain(uint32_t number, uint64_t* items, uint64_t* lines, std::string* why) const {
  const std::string where = "bucket " + std::to_string(number);
  std::vector<std::string_view> keys;
  bool ended = false;
  for (const Bucket* at = &bucket(number);; at = &line(at->overflow)) {
    for (const uint64_t slot : at->slots) {
      if (slot == 0) {
        ended = true;
        continue;
      }
      if (ended) return *why = where + " has a hole", false;
      const ItemRef ref = location(slot);
      if (ref.page() < pages_.fixed() || ref.page() >= pages_.size()) return *why = where + " points outside", false;
      const PageUse use = pages_.info(ref.page()).use;
      if ((use != PageUse::kSmall && use != PageUse::kMain) || item(ref).is_dead())
        return *why = where + " points to what is no item", false;
      const Item& it = item(ref);
      const uint64_t hash = hash_of(it);
      if (bucket_number(hash) != number) return *why = where + " has an item of another bucket", false;
      if (tag_and_hint(hash, level_of(number)) != (slot & ~kKeptBySplit))
        return *why = where + " has a wrong tag or hint", false;
      const bool expires = (slot >> Slot::kExpiresShift & 1) != 0;
      if (expires != (it.exptime() != 0)) return *why = where + " is wrong about an exptime", false;
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
  const uint32_t buckets = bucket_count();
  for (uint32_t number = 0; number < buckets; ++number) {
    if (!check_chain(number, &items, &lines, why)) return false;
  }
  if (items != state_.items) return *why = "the index miscounts its items", false;
  if (lines != state_.overflow_lines) return *why = "the index miscounts its overflow lines", false;
  uint64_t free_lines = state_.fresh_lines;
  for (uint32_t at = state_.free_line; at != kNoLine; at = line(at).overflow) ++free_lines;
  const uint64_t bucket_pages = (uint64_t{buckets} + kLinesPerPage - 1) / kLinesPerPage;
  const uint64_t overflow_capacity = (pages_.count(PageUse::kIndex) - bucket_pages) * kLinesPerPage;
  if (lines + free_lines != overflow_capacity) return *why = "the index has lost lines", false;
  return true;
}

}  // namespace egret::store
