// Little-endian fields in unaligned memory, and cursors over them that never pass the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace egret::wire {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and so far read in place");

// Writes fields one after the other. The caller has made sure that they fit.
class FieldWriter {
 public:
  explicit FieldWriter(std::byte* at) : at_(at) {}

  template <typename T>
  void put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void put_bytes(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

// Reads fields one after the other from bytes that a peer wrote. A read past the end returns 0 and makes ok() false for
// good, so a decoder reads a whole struct and checks ok() once. Every byte is read only once.
class FieldReader {
 public:
  FieldReader(const std::byte* begin, size_t length) : at_(begin), left_(length) {}

  template <typename T>
  T get() {
    T value{};
    if (left_ < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    left_ -= sizeof value;
    return value;
  }
  std::string_view get_bytes(size_t length) {
    if (left_ < length) {
      fail();
      return {};
    }
    const std::string_view bytes(reinterpret_cast<const char*>(at_), length);
    at_ += length;
    left_ -= length;
    return bytes;
  }
  // Not more than are left.
  void skip(size_t length) {
    at_ += length;
    left_ -= length;
  }
  bool ok() const { return ok_; }
  size_t left() const { return left_; }

 private:
  void fail() {
    ok_ = false;
    left_ = 0;
  }
  const std::byte* at_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace egret::wire
