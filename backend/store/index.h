// Where the item of a key is: linear hashing over 64-byte buckets, growing one bucket at a time.
//
//   bucket = [ overflow link 4 B | 4 B unused | 7 slots of 8 B ]
//   slot   = [ tag 16 bits | hint 8 bits | location 40 bits ]; 0 is an empty one. A chain has no holes.
//
// The low bits of the hash choose the bucket, bits 32..47 are the tag (the partition is chosen by the highest ones),
// and the hint holds the next few of the low bits, so that seven of eight doublings split buckets without reading an
// item. Buckets, first ones and overflow alike, are *lines* of granules (64 KiB) at the arena's end, the first granule
// being the last 64 KiB; a directory maps 1024 bucket numbers at a time to a granule. Lossless: nothing is ever pushed
// out. Thread: the store's owner's.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/item.h"

namespace egret::store {

class Index {
 public:
  static constexpr uint32_t kGranule = 64u << 10;
  static constexpr uint32_t kLinesPerGranule = kGranule / 64;
  static constexpr uint32_t kFirstLevel = 10;  // 1024 buckets to begin with

  // `directory` has room for one entry per granule of the arena. One granule is taken at once.
  Index(std::byte* arena, uint64_t arena_size, uint32_t* directory, uint64_t hash_seed);

  void prefetch(uint64_t hash) const { __builtin_prefetch(&bucket_of(hash)); }
  // First guess of where the item is, from the bucket alone: prefetches it. False: the overflow must be looked at.
  bool prefetch_item(uint64_t hash) const;
  void prefetch_overflow_item(uint64_t hash) const;

  ItemRef find(std::string_view key, uint64_t hash) const;
  // The key must not be there. False: a line is needed and there is none; see wants_granule().
  [[nodiscard]] bool insert(uint64_t hash, ItemRef ref);
  // `ref` must be there.
  void erase(uint64_t hash, ItemRef ref);
  void replace(uint64_t hash, ItemRef ref, ItemRef with);

  // One bounded step of growth: splits one bucket if the load asks for it and there is a line. Call it after every
  // insert.
  void grow();
  // Growth or an insert waits for lines: give it the arena's next granule from the end.
  bool wants_granule() const { return wants_granule_; }
  void add_granule() {
    ++granules_;
    wants_granule_ = false;
  }

  // Calls visit(ItemRef) for every item of the bucket where `hash` belongs, until it returns true.
  template <typename Visit>
  bool visit_bucket(uint64_t hash, Visit visit) const;

  uint64_t item_count() const { return items_; }
  uint64_t bytes() const { return uint64_t{granules_} * kGranule; }
  uint64_t hash_of(const Item& item) const;
  bool check(std::string* why) const;

 private:
  static constexpr uint32_t kSlots = 7;
  static constexpr uint32_t kNoLine = 0;  // as a link: links are line numbers plus 1
  static constexpr uint32_t kHintBits = 8;
  static constexpr uint64_t kLocationMask = (uint64_t{1} << 40) - 1;

  struct alignas(64) Bucket {
    uint32_t overflow;  // line number plus 1
    uint32_t unused;
    uint64_t slots[kSlots];
  };
  static_assert(sizeof(Bucket) == 64);

  // Appends to a chain whose first bucket is given, taking lines from the free ones.
  struct Appender {
    Bucket* bucket;
    uint32_t used = 0;
  };

  // Never 0, so that no empty slot has it.
  static uint64_t tag_of(uint64_t hash) {
    const uint64_t bits = hash >> 32 & 0xffff;
    return bits + (bits == 0);
  }
  // A bit for every slot with this tag. Without branches: which slot it is cannot be predicted.
  static uint32_t matches(const Bucket& bucket, uint64_t tag) {
    uint32_t found = 0;
#pragma GCC unroll 7
    for (uint32_t i = 0; i < kSlots; ++i) found |= static_cast<uint32_t>(bucket.slots[i] >> 48 == tag) << i;
    return found;
  }
  static ItemRef location(uint64_t slot) {
    return {static_cast<uint32_t>(slot & kLocationMask)};
  }
  static uint32_t hint_base(uint32_t level) {
    return level / kHintBits * kHintBits;
  }
  static uint64_t make_slot(uint64_t hash, uint32_t level, ItemRef ref) {
    return tag_of(hash) << 48 | (hash >> hint_base(level) & 0xff) << 40 | ref.unit;
  }

  uint32_t bucket_number(uint64_t hash) const;
  uint32_t level_of(uint32_t bucket) const;  // how many bits of the hash its items share
  Bucket& line(uint32_t number) const {
    return *reinterpret_cast<Bucket*>(end_ - (uint64_t{number} + 1) * sizeof(Bucket));
  }
  Bucket& bucket(uint32_t number) const {
    return line(directory_[number / kLinesPerGranule] * kLinesPerGranule + number % kLinesPerGranule);
  }
  Bucket& bucket_of(uint64_t hash) const {
    return bucket(bucket_number(hash));
  }
  Bucket& overflow_of(const Bucket& from) const {
    return line(from.overflow - 1);
  }
  const Item& item(ItemRef ref) const {
    return *reinterpret_cast<const Item*>(arena_ + uint64_t{ref.unit} * kUnit);
  }
  uint64_t* find_slot(uint64_t hash, ItemRef ref) const;
  uint32_t take_line();  // link of a line, zeroed; kNoLine if there is none
  void give_line(uint32_t link);
  bool take_granule(uint32_t* granule);
  void split(uint32_t from);
  void append(Appender& to, uint64_t slot);
  bool check_chain(uint32_t number, uint64_t* items, uint64_t* lines, std::string* why) const;

  std::byte* arena_;
  std::byte* end_;
  uint32_t* directory_;
  uint64_t hash_seed_;
  uint32_t level_ = kFirstLevel;  // buckets 0 .. 2^level + split - 1 exist
  uint32_t split_ = 0;            // the next bucket to split
  uint64_t items_ = 0;
  uint32_t granules_ = 1;  // that the arena has given
  uint32_t used_granules_ = 1;
  uint32_t free_line_ = kNoLine;  // links of lines that are free again
  uint32_t fresh_line_ = 0;       // the next never used line of the newest overflow granule
  uint32_t fresh_lines_ = 0;
  uint64_t overflow_lines_ = 0;  // in chains
  bool wants_granule_ = false;
};

inline uint32_t Index::bucket_number(uint64_t hash) const {
  const auto low = static_cast<uint32_t>(hash);
  const uint32_t short_number = low & ((1u << level_) - 1);
  return short_number >= split_ ? short_number : low & ((2u << level_) - 1);
}

inline ItemRef Index::find(std::string_view key, uint64_t hash) const {
  const uint64_t tag = tag_of(hash);
  const Bucket* at = &bucket_of(hash);
  while (true) {
    for (uint32_t found = matches(*at, tag); found != 0; found &= found - 1) {
      const ItemRef ref = location(at->slots[std::countr_zero(found)]);
      if (item(ref).has_key(key)) return ref;
    }
    if (at->overflow == kNoLine) return {};
    at = &overflow_of(*at);
  }
}

template <typename Visit>
bool Index::visit_bucket(uint64_t hash, Visit visit) const {
  const Bucket* at = &bucket_of(hash);
  while (true) {
    for (const uint64_t slot : at->slots) {
      if (slot == 0) return false;
      if (visit(location(slot))) return true;
    }
    if (at->overflow == kNoLine) return false;
    at = &overflow_of(*at);
  }
}

}  // namespace egret::store
