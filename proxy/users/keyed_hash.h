// HMAC-SHA256 of some texts. With a random key of this process, nobody outside can compute it. Cold path; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace egret::proxy {

using KeyedHash = std::array<unsigned char, 32>;

// Other texts, or the same bytes parted otherwise, have another hash. Where none can be
// made, for want of memory, it is one that nothing else has.
KeyedHash keyed_hash(std::span<const std::byte> key, std::initializer_list<std::string_view> texts);
// In a time that does not depend on what they hold.
bool is_same(const KeyedHash& a, const KeyedHash& b);

}  // namespace egret::proxy
