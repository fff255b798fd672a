// Cryptographically secure random numbers from the kernel. Any thread; never fails, but may wait early during boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace egret::base {

void fill_random(std::span<std::byte> bytes);
uint64_t random_u64();

}  // namespace egret::base
