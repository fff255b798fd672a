// What nodes tell each other before a run: plain structs, as they lie in memory. Both hosts run the same build.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace egret::bench_paradigms {

inline constexpr const char* kStrangeNotice = "the other side tells something of another size";

template <typename T>
std::string to_notice(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// False: it comes from another build.
template <typename T>
bool read_notice(std::string_view notice, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (notice.size() != sizeof value) return false;
  std::memcpy(&value, notice.data(), sizeof value);
  return true;
}

}  // namespace egret::bench_paradigms
