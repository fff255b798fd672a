// The memory of a store: one reservation, the only one it makes, anonymous or (for a warm restart) a file's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace egret::store {

// What the kernel gave: explicit huge pages, pages that it may make huge by itself (madvise), or neither.
enum class Backing : uint8_t { kHugePages, kTransparentHugePages, kSmallPages };
const char* to_string(Backing backing);

struct ArenaOptions {
  uint64_t bytes = 0;     // rounded down to whole pages of 4 KiB
  bool populate = false;  // have every page resident before it is used, rather than when it is first touched
  std::string path;       // a file on tmpfs or hugetlbfs to keep it in; empty: anonymous memory
};

class Arena {
 public:
  // Zeroed unless the file was there before, aligned to 2 MiB. Errors: no such memory, a file that is locked by another
  // process or cannot be had.
  static base::Expected<Arena> reserve(const ArenaOptions& options);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  Backing backing() const { return backing_; }
  bool is_file() const { return descriptor_ >= 0; }
  // The file had this size already, so what is in it may be a store's.
  bool was_there() const { return was_there_; }

 private:
  Arena() = default;
  base::Status map_anonymous();
  base::Status map_file(const std::string& path);
  base::Status populate();

  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  Backing backing_ = Backing::kSmallPages;
  bool was_there_ = false;
};

}  // namespace egret::store
