// One reservation of memory, the only one a store makes. Pages become resident when they are first touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace egret::store {

class Arena {
 public:
  // `bytes` is rounded down to whole pages. Zeroed, aligned to 2 MiB, huge pages where the kernel has them.
  static base::Expected<Arena> reserve(uint64_t bytes);
  Arena(Arena&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_(other.mapped_),
        data_(other.data_),
        size_(other.size_) {}
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  Arena() = default;
  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace egret::store
