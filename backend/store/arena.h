// The memory of a store: one reservation, the only one it makes, anonymous or (for a warm restart) a file's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace egret::store {

// What the kernel gave: explicit huge pages, pages that it makes huge by itself (madvise), or neither. Of memory that
// is not populated yet: what it may give.
enum class Backing : uint8_t { kHugePages, kTransparentHugePages, kSmallPages };
const char* to_string(Backing backing);

// How reserve() found the file. Of this size: what is in it is still there, and may be a store's.
enum class FileWas : uint8_t { kMissing, kOfThisSize, kOfAnotherSize };

struct ArenaOptions {
  uint64_t bytes = 0;     // rounded down to whole pages of 4 KiB
  bool populate = false;  // have every page resident before it is used, rather than when it is first touched
  std::string path;       // a file on tmpfs or hugetlbfs to keep it in; empty: anonymous memory
};

class Arena {
 public:
  // Zeroed unless the file was there before and had this size; anonymous memory is aligned to 2 MiB. Errors: no such
  // memory, a file that is locked by another process or cannot be had.
  static base::Expected<Arena> reserve(const ArenaOptions& options);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  Backing backing() const { return backing_; }
  bool is_file() const { return descriptor_ >= 0; }
  FileWas file_was() const { return file_was_; }
  // Of what is resident, how much lies in huge pages, as the kernel counts it. Cold path.
  uint64_t huge_bytes() const;

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
  FileWas file_was_ = FileWas::kMissing;
};

}  // namespace egret::store
