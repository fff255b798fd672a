// A fuzzer's input as a script: small numbers first come, first served; zeroes when it has run out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace egret::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const std::byte*>(data), size) {}

  bool at_end() const { return left_.empty(); }
  template <typename T>
  T take() {
    T value{};
    const size_t size = std::min(sizeof value, left_.size());
    if (size > 0) std::memcpy(&value, left_.data(), size);
    left_ = left_.subspan(size);
    return value;
  }
  std::span<const std::byte> bytes(size_t most) {
    const auto taken = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace egret::fuzz
