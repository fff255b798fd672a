// Where the item of a key is: linear hashing over 64-byte buckets, growing one bucket at a time.
//
//   bucket = [ overflow link 4 B | 4 B unused | 7 slots of 8 B ]
//   slot   = [ tag 14 bits | hint 7 | frequency 2 | expires 1 | location 40 ]; 0: empty. A chain has no gaps.
//
// The low bits of the hash choose the bucket; bits 32..45 are the tag; the highest bits choose the partition. The hint
// holds the next 7 low bits, so that six of seven doublings split buckets without reading items. The frequency counts
// reads, up to 3; it is in the slot instead of the item, so that a read writes one cache line only. Buckets and
// overflow buckets are *lines* of 64 bytes in the index's pages; a directory says which page holds buckets 1024 n to
// 1024 n + 1023. The index never evicts an entry. Thread: the store's owner's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "op/op.h"
#include "store/memory/item.h"
#include "store/memory/pages.h"

namespace egret::store {

// One item's place in the index. Valid until the next insert(), erase() or grow().
class Slot {
 public:
  Slot() = default;
  explicit Slot(uint64_t* at) : at_(at) {}
  explicit operator bool() const { return at_ != nullptr; }

  ItemRef ref() const { return {*at_ & kLocationMask}; }
  void set_ref(ItemRef ref) { *at_ = (*at_ & ~kLocationMask) | ref.unit; }
  uint32_t frequency() const { return static_cast<uint32_t>(*at_ >> kFrequencyShift & 3); }
  void set_frequency(uint32_t frequency) {
    *at_ = (*at_ & ~(uint64_t{3} << kFrequencyShift)) | uint64_t{frequency} << kFrequencyShift;
  }
  void note_read() {
    if (frequency() < kMaxFrequency) *at_ += uint64_t{1} << kFrequencyShift;
  }
  bool expires() const { return (*at_ >> kExpiresShift & 1) != 0; }
  void set_expires(bool expires) {
    *at_ = (*at_ & ~(uint64_t{1} << kExpiresShift)) | uint64_t{expires} << kExpiresShift;
  }

  static constexpr uint32_t kMaxFrequency = 3;
  static constexpr uint64_t kLocationMask = (uint64_t{1} << 40) - 1;
  static constexpr uint32_t kExpiresShift = 40;
  static constexpr uint32_t kFrequencyShift = 41;
  static constexpr uint32_t kHintShift = 43;
  static constexpr uint32_t kTagShift = 50;

 private:
  friend class Index;
  uint64_t* at_ = nullptr;
};

class Index {
 public:
  static constexpr uint32_t kLinesPerPage = kPageSize / 64;
  static constexpr uint32_t kFirstLevel = 10;  // 1024 buckets, a page, to begin with
  static constexpr uint32_t kSlots = 7;

  // What a warm restart needs besides the pages and the directory.
  struct State {
    uint32_t level;  // buckets 0 .. 2^level + split - 1 exist
    uint32_t split;  // the next bucket to split
    uint64_t items;
    uint32_t free_line;    // head of the list of lines that became free
    uint32_t fresh_line;   // the next unused line of the newest overflow page
    uint32_t fresh_lines;  // how many unused lines that page has left
    uint32_t unused;
    uint64_t overflow_lines;  // in chains
  };

  // `directory` has room for one entry per page of the arena. `kept` as for Pages; a new one takes a page at once.
  Index(std::byte* arena, Pages& pages, PageNumber* directory, uint64_t hash_seed, const State* kept);
  const State& state() const { return state_; }

  void prefetch(uint64_t hash) const { prefetch_line(&bucket_of(hash)); }

  // A batch whose cache misses overlap: first prefetch all buckets, then guess each item's place from its bucket's tags
  // and prefetch the items.
  class Lookup;
  static constexpr size_t kMostLookups = 32;
  void prefetch_buckets(std::span<const op::Op> ops, std::span<Lookup> lookups) const;
  void guess_items(std::span<Lookup> lookups) const;
  // Counts the changes that invalidate slots: a guess is valid while this stays the same.
  uint64_t changes() const { return changes_; }

  Slot find(std::string_view key, uint64_t hash) const;
  // The slot that points at this record; none if no slot does.
  Slot find(ItemRef ref, uint64_t hash) const;
  // Requires: the key is not there; may_need_page() is false or a page is free.
  Slot insert(uint64_t hash, ItemRef ref);
  void erase(uint64_t hash, Slot slot);

  // Whether the next insert() may have to take a page.
  bool may_need_page() const { return state_.free_line == kNoLine && state_.fresh_lines == 0; }
  // One bounded step of growth: splits one bucket if the load is too high. When a split needs a page, it takes one only
  // if more than `reserve` pages are free, else growth waits. Call it after every insert.
  void grow(uint32_t reserve);

  // Calls visit(Slot) for every item of that bucket. visit() returns true if it erased the item: the last item of the
  // chain has then moved into the slot, so the slot is visited again.
  template <typename Visit>
  void visit_bucket(uint32_t number, Visit visit);
  uint32_t bucket_count() const { return (1u << state_.level) + state_.split; }
  void prefetch_bucket(uint32_t number) const { prefetch_line(&bucket(number)); }
  void prefetch_items(uint32_t number) const;

  // --- A walk in an order that growth does not change: by position, which is the hash with its bits reversed. A bucket
  // holds the items of one range of positions; a split cuts its range in two.
  static uint64_t position_of(uint64_t hash);
  uint32_t bucket_at(uint64_t position) const { return bucket_number(position_of(position)); }
  // Where the range after that of bucket_at(position) begins; 0: that was the last range.
  uint64_t position_behind(uint64_t position) const {
    const uint32_t shift = 64 - level_of(bucket_at(position));
    return ((position >> shift) + 1) << shift;
  }

  uint64_t hash_of(const Item& item) const;
  // Whether every entry is in its bucket and the counts are right; `why` says what is wrong.
  bool check(std::string* why) const;

 private:
  static constexpr uint32_t kNoLine = 0;  // line 0 of the arena belongs to the superblock
  static constexpr uint32_t kHintBits = 7;

  struct alignas(64) Bucket {
    uint32_t overflow;  // a line
    uint32_t unused;
    uint64_t slots[kSlots];
  };
  static_assert(sizeof(Bucket) == 64);

  // Appends to the chain that begins at `bucket`; takes more lines from the free list.
  struct Appender {
    Bucket* bucket;
    uint32_t used = 0;
  };

  // Never 0, the tag of an empty slot.
  static uint32_t tag_of(uint64_t hash) {
    const auto bits = static_cast<uint32_t>(hash >> 32 & 0x3fff);
    return std::max(bits, 1u);
  }
  // One bit for every slot with this tag. Branch-free, since the matching slot cannot be predicted.
  static uint32_t matches(const Bucket& bucket, uint32_t tag);
  // The first of these slots, if any.
  static Slot match(Bucket& bucket, uint32_t tag) {
    const uint32_t found = matches(bucket, tag);
    return found != 0 ? Slot(bucket.slots + std::countr_zero(found)) : Slot{};
  }
  static ItemRef location(uint64_t slot) { return {slot & Slot::kLocationMask}; }
  static uint32_t hint_base(uint32_t level) { return kFirstLevel + (level - kFirstLevel) / kHintBits * kHintBits; }
  static uint64_t tag_and_hint(uint64_t hash, uint32_t level) {
    return uint64_t{tag_of(hash)} << Slot::kTagShift | (hash >> hint_base(level) & 0x7f) << Slot::kHintShift;
  }
  static constexpr uint64_t kKeptBySplit = (uint64_t{1} << Slot::kHintShift) - 1;

  uint32_t bucket_number(uint64_t hash) const;
  uint32_t level_of(uint32_t bucket) const;  // how many bits of the hash its items share
  Bucket& line(uint32_t number) const { return *reinterpret_cast<Bucket*>(arena_ + uint64_t{number} * sizeof(Bucket)); }
  Bucket& bucket(uint32_t number) const {
    return line(directory_[number / kLinesPerPage] * kLinesPerPage + number % kLinesPerPage);
  }
  Bucket& bucket_of(uint64_t hash) const { return bucket(bucket_number(hash)); }
  const std::byte* record(ItemRef ref) const { return arena_ + ref.unit * kUnit; }
  const Item& item(ItemRef ref) const { return *reinterpret_cast<const Item*>(record(ref)); }
  PageNumber take_page();
  uint32_t take_line();  // zeroed; kNoLine if there is none
  void give_line(uint32_t number);
  void split(uint32_t from);
  void append(Appender& to, uint64_t slot);
  bool check_chain(uint32_t number, uint64_t* items, uint64_t* lines, std::string* why) const;

  std::byte* arena_;
  Pages& pages_;
  PageNumber* directory_;
  uint64_t hash_seed_;
  State state_;
  uint64_t changes_ = 0;
};

// Where the item of one op of a batch may be.
class Index::Lookup {
 public:
  Lookup() = default;
  // The guess; none if no slot has that tag.
  Slot slot() const { return slot_; }

 private:
  friend class Index;
  Lookup(Bucket& bucket, uint32_t tag, const std::byte* record) : bucket_(&bucket), tag_(tag), record_(record) {}
  Bucket* bucket_ = nullptr;
  uint32_t tag_ = 0;
  Slot slot_;
  const std::byte* record_ = nullptr;  // the slot's record, else any record: prefetched without a branch
};

#ifdef __SSE2__
inline uint32_t Index::matches(const Bucket& bucket, uint32_t tag) {
  const auto* const at = reinterpret_cast<const __m128*>(&bucket);
  constexpr int kHighWords = 0b11'01'11'01;
  const auto found = [tag](__m128 first, __m128 second) {
    const __m128i high = _mm_castps_si128(_mm_shuffle_ps(first, second, kHighWords));
    const __m128i tags = _mm_srli_epi32(high, Slot::kTagShift - 32);
    return _mm_castsi128_ps(_mm_cmpeq_epi32(tags, _mm_set1_epi32(static_cast<int>(tag))));
  };
  const int first = _mm_movemask_ps(found(at[0], at[1]));  // the header never matches: `unused` is 0
  const int second = _mm_movemask_ps(found(at[2], at[3]));
  return static_cast<uint32_t>(first | second << 4) >> 1;
}
#else
inline uint32_t Index::matches(const Bucket& bucket, uint32_t tag) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < kSlots; ++i) found |= static_cast<uint32_t>(bucket.slots[i] >> Slot::kTagShift == tag) << i;
  return found;
}
#endif

inline uint32_t Index::bucket_number(uint64_t hash) const {
  const auto low = static_cast<uint32_t>(hash);
  const uint32_t short_number = low & ((1u << state_.level) - 1);
  return short_number >= state_.split ? short_number : low & ((2u << state_.level) - 1);
}

template <typename Visit>
void Index::visit_bucket(uint32_t number, Visit visit) {
  Bucket* at = &bucket(number);
  while (true) {
    for (uint32_t i = 0; i < kSlots;) {
      if (at->slots[i] == 0) return;
      if (!visit(Slot(at->slots + i))) ++i;
    }
    if (at->overflow == kNoLine) return;
    at = &line(at->overflow);
  }
}

}  // namespace egret::store
