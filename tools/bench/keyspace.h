// The keys of a run, and values that identify their keys. Key number i always has the same text, and every part of its
// value can be recognised, so that mixed up, shifted and torn answers are detected:
//
//   bytes 0..7   the key's number          then stamps of 8 bytes, derived from key, version and place: up to byte 63 in
//   bytes 8..15  the version of this set   every word, from there on where a cache line begins; the rest is filler
//
// A shorter value has as much of this as fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace egret::bench {

// All keys, formatted once: 'k' and the zero-padded number. Read-only after construction; any thread.
class Keyspace {
 public:
  // key_size >= min_key_size(count).
  Keyspace(uint32_t count, uint32_t key_size);

  uint32_t count() const { return count_; }
  uint32_t key_size() const { return key_size_; }
  std::string_view key(uint32_t number) const {
    return {text_.data() + static_cast<size_t>(number) * key_size_, key_size_};
  }
  static uint32_t min_key_size(uint32_t count);

 private:
  uint32_t count_;
  uint32_t key_size_;
  std::string text_;
};

void write_value(char* out, size_t size, uint32_t key_number, uint64_t version);

enum class ValueVerdict : uint8_t {
  kGood,
  kOtherKey,  // it has another key's number
  kTorn,      // parts of it belong to another key, version or place
};
ValueVerdict judge_value(const char* value, size_t size, uint32_t key_number);

}  // namespace egret::bench
