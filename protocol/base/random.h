// Random numbers that nobody can guess, from the kernel's generator. Any thread; never fails, may wait early at boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace egret::base {

void fill_random(std::span<std::byte> bytes);
uint64_t random_u64();

}  // namespace egret::base
