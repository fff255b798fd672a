// HMAC-SHA256 of some texts. With a random key of this process, nobody outside can compute it. Cold path; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace egret::proxy {

using KeyedHash = std::array<unsigned char, 32>;

// Different texts have different hashes, also if their bytes are the same in a row ("ab", "c" and "a", "bc"). Without
// memory for it the result is random, so it equals nothing.
KeyedHash keyed_hash(std::span<const std::byte> key, std::initializer_list<std::string_view> texts);
// Takes the same time whatever they hold.
bool is_same(const KeyedHash& a, const KeyedHash& b);

}  // namespace egret::proxy
