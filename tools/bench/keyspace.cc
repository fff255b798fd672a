#include "bench/keyspace.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bench/sampler.h"

namespace egret::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "value stamps are compared as machine words");

constexpr size_t kLine = 64;
constexpr size_t kStamp = sizeof(uint64_t);
constexpr char kFiller = 'v';
constexpr size_t kFirst = 2 * kStamp;              // behind key and version
constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // odd, so the stamps of a value all differ

// Where the stamp after this one is: every word of the first line has one, then every line.
constexpr size_t after(size_t offset) {
  return offset + (offset < kLine ? kStamp : kLine);
}

// Stamp n is first_stamp + n * kStep.
uint64_t first_stamp(uint64_t key_number, uint64_t version) {
  return mix64(key_number * kStep + mix64(version));
}

void put(char* value, size_t size, size_t offset, uint64_t word) {
  if (offset < size) std::memcpy(value + offset, &word, std::min(kStamp, size - offset));
}

// The bytes of `word` that lie inside the value are there.
bool holds(const char* value, size_t size, size_t offset, uint64_t word) {
  return offset >= size || std::memcmp(value + offset, &word, std::min(kStamp, size - offset)) == 0;
}

}  // namespace

uint32_t Keyspace::min_key_size(uint32_t count) {
  return 1 + static_cast<uint32_t>(std::to_string(count == 0 ? 0 : count - 1).size());
}

Keyspace::Keyspace(uint32_t count, uint32_t key_size) : count_(count), key_size_(key_size) {
  text_.reserve(static_cast<size_t>(count) * key_size);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string digits = std::to_string(i);
    text_ += 'k';
    text_.append(key_size - 1 - digits.size(), '0');
    text_ += digits;
  }
}

void write_value(char* out, size_t size, uint32_t key_number, uint64_t version) {
  std::memset(out, kFiller, size);
  put(out, size, 0, key_number);
  put(out, size, kStamp, version);
  uint64_t stamp = first_stamp(key_number, version);
  for (size_t offset = kFirst; offset < size; offset = after(offset)) put(out, size, offset, stamp += kStep);
}

ValueVerdict judge_value(const char* value, size_t size, uint32_t key_number) {
  if (!holds(value, size, 0, key_number)) return ValueVerdict::kOtherKey;
  if (size <= kFirst) return ValueVerdict::kGood;
  uint64_t version = 0;
  std::memcpy(&version, value + kStamp, kStamp);
  uint64_t stamp = first_stamp(key_number, version);
  size_t offset = kFirst;
  uint64_t wrong = 0;
  for (; offset + kStamp <= size; offset = after(offset)) {
    uint64_t word = 0;
    std::memcpy(&word, value + offset, kStamp);
    wrong |= word ^ (stamp += kStep);
  }
  if (wrong != 0 || (offset < size && !holds(value, size, offset, stamp + kStep))) return ValueVerdict::kTorn;
  return ValueVerdict::kGood;
}

}  // namespace egret::bench
