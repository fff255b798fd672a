// A record of the log: an item, or what is left of one. Eight-byte aligned, sized in units of eight bytes.
//
//   item:  [ head 16 B | exptime 4 B | client flags 4 B | CAS 8 B | key | inline bytes | up to 7 B of slack ]
//   dead:  [ its units << 8 | old bytes ]
//
// Exptime, client flags and CAS are present if their bit is set. The inline bytes are the value, or, in a large item
// (kLarge, see value.h), the list of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "store/memory/pages.h"

namespace egret::store {

// Larger values lie outside the log, so that the end of a log page wastes at most a sixteenth of it.
inline constexpr uint64_t kMaxInline = kPageSize / 16;

// Names a record: its offset from the arena's start, in units. 0: none.
struct ItemRef {
  uint64_t unit = 0;
  explicit operator bool() const { return unit != 0; }
  bool operator==(const ItemRef&) const = default;
  PageNumber page() const { return static_cast<PageNumber>(unit / kUnitsPerPage); }
};

using Bits = uint16_t;  // 12 of them
enum ItemBits : Bits {
  kHasExptime = 1 << 0,
  kHasFlags = 1 << 1,
  kHasCas = 1 << 2,
  kLarge = 1 << 3,
  kFetched = 1 << 4,    // read since it was stored
  kStale = 1 << 5,      // invalidated
  kTokenSent = 1 << 6,  // a reader was told to store it anew (it won)
  kPinned = 1 << 7,     // is neither moved nor overwritten; may be out of the index: see pins.cc
  kGivenCas = 1 << 8,   // the CAS field holds a CAS that a client gave; else the CAS follows from the version
};
inline constexpr Bits kLayoutBits = kHasExptime | kHasFlags | kHasCas | kLarge;

// An inline memcmp() by words: keys are short, and a call would cost as much as the comparison.
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

// The head, which every record has, dead or alive.
class LogRecord {
 public:
  static constexpr size_t kHead = 16;
  static constexpr uint64_t kMaxVersion = (uint64_t{1} << 56) - 1;

  static uint32_t units_for(size_t key_length, Bits bits, uint64_t inline_length) {
    return static_cast<uint32_t>((kHead + options_size(bits) + key_length + inline_length + kUnit - 1) / kUnit);
  }

  bool is_dead() const { return key_length() == 0; }
  uint32_t units() const {
    return is_dead() ? static_cast<uint32_t>(head_ >> 8) : units_for(key_length(), bits(), inline_length());
  }
  void kill(uint32_t units) { head_ = uint64_t{units} << 8; }

  // Makes this record an item. The caller then writes the key, the value and the fields whose bits are set.
  void lay_out(size_t key_length, Bits bits, uint64_t inline_length, uint64_t version, uint32_t now) {
    head_ = version << 8 | key_length;
    last_access_ = now;
    body_ = uint32_t{bits} << kLengthBits | static_cast<uint32_t>(inline_length);
  }

  size_t key_length() const { return head_ & 0xff; }
  uint64_t version() const { return head_ >> 8; }
  void set_version(uint64_t version) { head_ = version << 8 | (head_ & 0xff); }
  Bits bits() const { return static_cast<Bits>(body_ >> kLengthBits); }
  bool has(Bits mask) const { return (bits() & mask) != 0; }
  void set_bits(Bits mask) { body_ |= uint32_t{mask} << kLengthBits; }
  void clear_bits(Bits mask) { body_ &= ~(uint32_t{mask} << kLengthBits); }
  uint32_t inline_length() const { return body_ & kLengthMask; }
  void set_inline_length(uint64_t length) { body_ = (body_ & ~kLengthMask) | static_cast<uint32_t>(length); }
  uint32_t last_access() const { return last_access_; }
  // Writes only what changes, so that a popular item's line stays clean.
  void note_read(uint32_t now) {
    if (last_access_ != now) last_access_ = now;
    if (!has(kFetched)) set_bits(kFetched);
  }

 protected:
  // Bytes of the optional fields that `bits` promise.
  static size_t options_size(Bits bits) {
    static_assert(kHasExptime == 1 && kHasFlags == 2 && kHasCas == 4);
    return (bits & kHasExptime) * 4u + (bits & kHasFlags) * 2u + (bits & kHasCas) * 2u;
  }

 private:
  static constexpr uint32_t kLengthBits = 20;
  static constexpr uint32_t kLengthMask = (1u << kLengthBits) - 1;

  uint64_t head_;         // version << 8 | key length; of a dead one: units << 8
  uint32_t last_access_;  // seconds since the epoch
  uint32_t body_;         // bits << 20 | inline length
};
static_assert(sizeof(LogRecord) == LogRecord::kHead && alignof(LogRecord) == kUnit);

// A record that is alive: what lies behind its head.
class Item : public LogRecord {
 public:
  uint32_t exptime() const { return has(kHasExptime) ? load<uint32_t>(options()) : 0; }
  void set_exptime(uint32_t second) { store(options(), second); }
  uint32_t client_flags() const { return has(kHasFlags) ? load<uint32_t>(options() + flags_at()) : 0; }
  void set_client_flags(uint32_t flags) { store(options() + flags_at(), flags); }
  std::optional<uint64_t> given_cas() const {
    return has(kGivenCas) ? std::optional(load<uint64_t>(options() + cas_at())) : std::nullopt;
  }
  // The record needs a CAS field only if `cas` is set.
  void set_given_cas(std::optional<uint64_t> cas) {
    clear_bits(kGivenCas);
    if (!cas) return;
    set_bits(kGivenCas);
    store(options() + cas_at(), *cas);
  }

  bool has_key(std::string_view wanted) const { return key_length() == wanted.size() && same_bytes(key_at(), wanted); }
  std::string_view key() const { return {key_at(), key_length()}; }
  char* key_data() { return options() + options_size(bits()); }
  char* inline_data() { return key_data() + key_length(); }
  std::string_view inline_bytes() const { return {key_at() + key_length(), inline_length()}; }

 private:
  template <typename T>
  static T load(const char* from) {
    T value{};
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <typename T>
  static void store(char* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }
  char* options() { return reinterpret_cast<char*>(this + 1); }
  const char* options() const { return reinterpret_cast<const char*>(this + 1); }
  const char* key_at() const { return options() + options_size(bits()); }
  size_t flags_at() const { return has(kHasExptime) ? 4 : 0; }
  size_t cas_at() const { return flags_at() + (has(kHasFlags) ? 4 : 0); }
};
static_assert(sizeof(Item) == Item::kHead && alignof(Item) == kUnit);

}  // namespace egret::store
