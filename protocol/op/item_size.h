// The size of an item as memcached 1.6 counts it. `item_size_max` limits this size, so that "object too large for
// cache" begins at the same byte as in memcached.
#pragma once

#include <cstddef>
#include <cstdint>

namespace egret::op {

// 48 bytes of header, 8 of CAS, the key and a NUL, 4 if client flags are not 0, the value and its line end.
constexpr uint64_t memcached_item_size(size_t key_length, uint32_t client_flags, uint64_t value_length) {
  return 48 + 8 + key_length + 1 + (client_flags != 0 ? 4 : 0) + value_length + 2;
}

}  // namespace egret::op
