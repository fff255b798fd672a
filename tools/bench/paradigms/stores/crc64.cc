#include "bench_paradigms/stores/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace egret::bench_paradigms {

namespace {

static_assert(std::endian::native == std::endian::little, "eight bytes are taken as one word");

constexpr uint64_t kReflected = 0xc96c5795d7870f42ULL;
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint64_t, 256>, kSlices>;

// tables[n][b]: the CRC of byte b with n bytes of zero after it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflected : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint64_t crc64(std::span<const std::byte> bytes) {
  uint64_t crc = ~uint64_t{0};
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xff];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint64_t>(*at)) & 0xff];
  return ~crc;
}

}  // namespace egret::bench_paradigms
