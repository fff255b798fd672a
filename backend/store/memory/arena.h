// The memory of a store: one reservation, made once. It is anonymous or, for a warm restart, a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace egret::store {

// What the kernel gave: explicit huge pages, transparent huge pages (madvise), or neither. Until the memory is
// populated: the best that the kernel may give.
enum class Backing : uint8_t { kHugePages, kTransparentHugePages, kSmallPages };
const char* to_string(Backing backing);

// How reserve() found the file. kOfThisSize: its contents are kept, and may be a store.
enum class FileWas : uint8_t { kMissing, kOfThisSize, kOfAnotherSize };

struct ArenaOptions {
  uint64_t bytes = 0;      // rounded down to whole pages of 4 KiB
  uint64_t addresses = 0;  // bytes of address space to reserve, if possible, for growth; rounded down likewise
  std::string path;        // the file on tmpfs or hugetlbfs to map; empty: anonymous memory
};

class Arena {
 public:
  // The memory is zeroed unless the file existed and had this size. Anonymous memory is aligned to 2 MiB. Errors: not
  // enough memory; the file cannot be opened, or another process has locked it.
  static base::Expected<Arena> reserve(const ArenaOptions& options);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // Makes these stretches (byte offsets) resident now, so that first use does not fault.
  struct Stretch {
    uint64_t begin;
    uint64_t end;
  };
  base::Status populate(std::span<const Stretch> stretches);
  // Gives the memory back to the system if the arena uses 4 KiB pages. Its contents are lost.
  void release(uint64_t offset, uint64_t length);
  // Makes released bytes usable again. False: the file system has no room for them any more.
  bool take_back(uint64_t offset, uint64_t length);
  // Whether the kernel may build huge pages over released gaps.
  void keep_huge(bool keep);

  std::byte* data() const { return data_; }
  // ArenaOptions::addresses if that could be reserved, else `bytes`. Explicit huge pages and files: always `bytes`.
  uint64_t size() const { return size_; }
  Backing backing() const { return backing_; }
  bool is_file() const { return descriptor_ >= 0; }
  FileWas file_was() const { return file_was_; }
  // Resident bytes that lie in huge pages, by the kernel's count. Cold path.
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
