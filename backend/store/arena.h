// The memory of a store: one reservation, the only one it makes, anonymous or (for a warm restart) a file's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  uint64_t bytes = 0;      // rounded down to whole pages of 4 KiB
  uint64_t addresses = 0;  // that it had better have, for memory to be used later; likewise
  std::string path;        // a file on tmpfs or hugetlbfs to keep it in; empty: anonymous memory
};

class Arena {
 public:
  // Zeroed unless the file was there before and had this size; anonymous memory is aligned to 2 MiB. Errors: no such
  // memory, a file that is locked by another process or cannot be had.
  static base::Expected<Arena> reserve(const ArenaOptions& options);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // Has these stretches (byte offsets) resident before they are used, rather than when they are first touched.
  struct Stretch {
    uint64_t begin;
    uint64_t end;
  };
  base::Status populate(std::span<const Stretch> stretches);
  // Gives the memory of whole pages of 4 KiB back to the system, if it lies in such; what was in it is gone.
  void release(uint64_t offset, uint64_t length);
  // They are to be used again. False: a file system has no room for them any more.
  bool take_back(uint64_t offset, uint64_t length);
  // Whether the kernel may (again) put huge pages where there are gaps.
  void keep_huge(bool keep);

  std::byte* data() const { return data_; }
  // `addresses`, if they were to be had, else `bytes`. Explicit huge pages and files have no more.
  uint64_t size() const { return size_; }
  Backing backing() const { return backing_; }
  bool is_file() const { return descriptor_ >= 0; }
  FileWas file_was() const { return file_was_; }
  // Of what is resident, how much lies in huge pages, as the kernel counts it. Cold path.
  uint64_t huge_bytes() const;

 private:
  Arena() = default;
  base::Status map_anonymous(uint64_t addresses);
  base::Status map_file(const std::string& path);
  base::Status populate(Stretch stretch);

  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  Backing backing_ = Backing::kSmallPages;
  FileWas file_was_ = FileWas::kMissing;
};

}  // namespace egret::store
