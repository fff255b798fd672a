// How large an item is, as memcached 1.6 counts it: what `item_size_max` limits, so that the border between stored and
// "object too large for cache" is the same byte as memcached's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace egret::op {

// 48 bytes of header, 8 of CAS, the key and its end, 4 for client flags other than 0, the value and its line end.
constexpr uint64_t memcached_item_size(size_t key_length, uint32_t client_flags, uint64_t value_length) {
  return 48 + 8 + key_length + 1 + (client_flags != 0 ? 4 : 0) + value_length + 2;
}

}  // namespace egret::op
