// CRC-64/XZ: ECMA-182's polynomial 0x42F0E1EBA9EA3693, bits reflected, started with and inverted by all ones. Paper 000
// takes a CRC of 64 bits and does not say which. Eight bytes a step, by tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace egret::bench_paradigms {

uint64_t crc64(std::span<const std::byte> bytes);

}  // namespace egret::bench_paradigms
