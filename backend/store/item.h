// What lies in the arena: blocks, each a free one or an item. Offsets and sizes count units of 8 bytes, from the
// arena's first byte; the arena holds at most 2^32 of them (32 GiB).
//
//   item:  [ header 24 B | client flags 4 B, if kHasFlags | key | value | slack ]
//   free:  [ units, bits | next, previous of its size class | ... | units (the last 4 B of the block) ]
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace egret::store {

inline constexpr uint64_t kUnit = 8;
inline constexpr uint64_t kMaxArena = kUnit << 32;

// Names a block of the arena; unit 0 is never a block's start. Meaningless once the block is freed.
struct ItemRef {
  uint32_t unit = 0;
  explicit operator bool() const { return unit != 0; }
  bool operator==(const ItemRef&) const = default;
};

enum BlockBits : uint8_t {
  kFree = 1 << 0,          // on a free list
  kPreviousFree = 1 << 1,  // the block before this one is free, so its size stands right before this header
  kLinked = 1 << 2,        // in the index. Neither free nor linked: an upload, or a version that only pins keep
  kHasFlags = 1 << 3,
  kFetched = 1 << 4,  // has been read since it was stored
  // The two highest bits count reads since the CLOCK hand came by, up to 3.
  kOneRead = 1 << 6,
  kFrequency = 3 << 6,
};

inline constexpr uint16_t kMaxPins = 0xffff;

// memcmp() by words, inline: keys are short, and a call costs as much as the comparison.
inline bool same_bytes(const char* at, std::string_view wanted) {
  const auto word = [](const char* from) {
    uint64_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const size_t length = wanted.size();
  if (length < sizeof(uint64_t)) {
    for (size_t i = 0; i < length; ++i) {
      if (at[i] != wanted[i]) return false;
    }
    return true;
  }
  for (size_t i = 0; i + sizeof(uint64_t) < length; i += sizeof(uint64_t)) {
    if (word(at + i) != word(wanted.data() + i)) return false;
  }
  const size_t last = length - sizeof(uint64_t);
  return word(at + last) == word(wanted.data() + last);
}

struct Item {
  uint32_t units;      // of the whole block
  uint8_t bits;        // BlockBits
  uint8_t key_length;  // items only, like all below
  uint16_t pins;       // who keep this block as it is: neither freed, nor moved, nor written
  uint64_t version;    // of the last change
  uint32_t value_length;
  uint32_t exptime;  // seconds since the epoch from which on it is expired; 0: never

  bool has(uint8_t mask) const { return (bits & mask) != 0; }
  void set_bits(uint8_t mask) { bits = static_cast<uint8_t>(bits | mask); }
  void clear_bits(uint8_t mask) { bits = static_cast<uint8_t>(bits & ~mask); }
  // Writes only what changes, so that a popular item's line stays clean.
  void note_read() {
    const auto wanted = static_cast<uint8_t>((bits | kFetched) + ((bits & kFrequency) != kFrequency ? kOneRead : 0));
    if (wanted != bits) bits = wanted;
  }

  char* extra() { return reinterpret_cast<char*>(this + 1); }
  const char* extra() const { return reinterpret_cast<const char*>(this + 1); }
  size_t flags_size() const { return has(kHasFlags) ? sizeof(uint32_t) : 0; }

  uint32_t client_flags() const {
    uint32_t flags = 0;
    if (has(kHasFlags)) std::memcpy(&flags, extra(), sizeof flags);
    return flags;
  }
  bool has_key(std::string_view wanted) const {
    return key_length == wanted.size() && same_bytes(extra() + flags_size(), wanted);
  }
  std::string_view key() const { return {extra() + flags_size(), key_length}; }
  char* value_data() { return extra() + flags_size() + key_length; }
  std::string_view value() const { return {extra() + flags_size() + key_length, value_length}; }
};
static_assert(sizeof(Item) == 24 && alignof(Item) == 8);

// Units that an item takes up, before the heap rounds them.
inline uint64_t item_units(size_t key_length, bool has_flags, uint64_t value_length) {
  return (sizeof(Item) + (has_flags ? sizeof(uint32_t) : 0) + key_length + value_length + kUnit - 1) / kUnit;
}

// The size that memcached gives an item (its header, a CAS, the key and a zero, client flags unless they are 0, the
// value and CR LF), so that the border of item_size_max is memcached's to the byte.
inline uint64_t counted_size(size_t key_length, uint32_t client_flags, uint64_t value_length) {
  return 48 + 8 + key_length + 1 + (client_flags != 0 ? 4 : 0) + value_length + 2;
}

}  // namespace egret::store
