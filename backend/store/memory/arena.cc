#include "store/memory/arena.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace egret::store {

namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2u << 20;

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

// Nobody but us and root may replace the file: the folder is not for others to write, or sticky (/dev/shm, /tmp).
base::Status check_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    return base::Status::system_error("warm_restart: the directory " + folder, errno);
  }
  const bool is_trusted_owner = info.st_uid == 0 || info.st_uid == ::geteuid();
  const bool is_for_others = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (is_trusted_owner && !is_for_others) return base::Status::ok();
  return base::Status::error("warm_restart: other users may replace files in " + folder +
                             ": it must belong to root or to this user, and others must not write to it (or it is "
                             "sticky, as /dev/shm is)");
}

// Opens the file of a warm restart, or makes it. One that somebody else could write, or cut, is refused: what is in it
// is used as it is. `info` is what is known of it.
base::Expected<base::UniqueFd> open_kept_file(const std::string& path, struct stat& info) {
  const auto refused = [&](const std::string& what) {
    return base::Status::error("warm_restart: " + path + " " + what);
  };
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  if (base::Status good = check_folder_of(path); !good) return good;
  // Either it is made by us and by nobody else at the same time, or it was there.
  base::UniqueFd file(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
  if (!file.is_open() && errno == EEXIST) file.reset(::open(path.c_str(), kFlags));
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) {
    return base::Status::system_error("warm_restart: cannot open " + path, errno);
  }
  if (!S_ISREG(info.st_mode)) return refused("is not a regular file");
  if (info.st_uid != ::geteuid()) {
    return refused("belongs to uid " + std::to_string(info.st_uid) + ", this process runs as uid " +
                   std::to_string(::geteuid()) + ": remove it, or give it to that user");
  }
  if ((info.st_mode & 077) != 0) return refused("is open to other users: its mode must be 0600");
  if (info.st_nlink != 1) return refused("has another name besides: a file with hard links is not used");
  return file;
}

// Whether the kernel honours MADV_HUGEPAGE.
bool has_transparent_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  return text.find("[always]") != std::string::npos || text.find("[madvise]") != std::string::npos;
}
}  // namespace

const char* to_string(Backing backing) {
  switch (backing) {
    case Backing::kHugePages:
      return "explicit huge pages";
    case Backing::kTransparentHugePages:
      return "transparent huge pages";
    case Backing::kSmallPages:
      return "pages of 4 KiB (no huge ones were to be had)";
  }
  return "unknown";
}

base::Expected<Arena> Arena::reserve(const ArenaOptions& options) {
  Arena arena;
  arena.size_ = options.bytes & ~(kPage - 1);
  const base::Status mapped = options.path.empty()
                                  ? arena.map_anonymous(std::max(options.addresses, options.bytes) & ~(kPage - 1))
                                  : arena.map_file(options.path);
  if (!mapped) return mapped;
  return arena;
}

base::Status Arena::map_anonymous(uint64_t addresses) {
  // Explicit huge pages come from the reserved pool. Without MAP_NORESERVE a shortage shows here; with it, as a SIGBUS
  // later.
  mapped_ = rounded_up(size_, kHugePage);
  void* mapping = MAP_FAILED;
  if (mapped_ - size_ <= size_ / 32) {
    mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  }
  if (mapping != MAP_FAILED) {
    backing_ = Backing::kHugePages;
  } else {
    const auto map = [&](uint64_t size) {
      mapped_ = size + kHugePage;
      mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      return mapping != MAP_FAILED;
    };
    // A system that does not overcommit, or a limit on address space, may refuse the larger reservation.
    if (map(addresses)) {
      size_ = addresses;
    } else if (!map(size_))
      return base::Status::system_error("cannot reserve " + base::size_text(mapped_) + " for the store", errno);
  }
  mapping_ = mapping;
  const uint64_t misaligned = reinterpret_cast<uint64_t>(mapping) % kHugePage;
  data_ = static_cast<std::byte*>(mapping) + (kHugePage - misaligned) % kHugePage;
  if (backing_ == Backing::kSmallPages && madvise(data_, size_, MADV_HUGEPAGE) == 0 && has_transparent_huge_pages())
    backing_ = Backing::kTransparentHugePages;
  (void)madvise(data_, size_, MADV_DONTDUMP);
  return base::Status::ok();
}

base::Status Arena::map_file(const std::string& path) {
  const auto failed = [&](const char* what) {
    return base::Status::system_error("warm_restart: " + std::string(what) + " " + path, errno);
  };
  struct stat status {};
  auto opened = open_kept_file(path, status);
  if (!opened) return opened.status();
  descriptor_ = opened.value().release();
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return failed("another process holds");
  struct statfs system {};
  if (::fstatfs(descriptor_, &system) != 0 || ::fstat(descriptor_, &status) != 0) return failed("cannot examine");
  const bool is_huge = system.f_type == HUGETLBFS_MAGIC;
  mapped_ = is_huge ? rounded_up(size_, static_cast<uint64_t>(system.f_bsize)) : size_;
  const bool fits = static_cast<uint64_t>(status.st_size) == mapped_;
  file_was_ = fits ? FileWas::kOfThisSize : status.st_size > 0 ? FileWas::kOfAnotherSize : FileWas::kMissing;
  if (!fits && (::ftruncate(descriptor_, 0) != 0 || ::ftruncate(descriptor_, static_cast<off_t>(mapped_)) != 0))
    return failed("cannot resize");
  // Allocate the blocks now: if the file system were full later, a write would end the process with SIGBUS.
  if (const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(mapped_)); error != 0) {
    return base::Status::system_error("warm_restart: no room of " + base::size_text(mapped_) + " for " + path, error);
  }
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    return failed("cannot map");
  }
  data_ = static_cast<std::byte*>(mapping_);
  if (is_huge) {
    backing_ = Backing::kHugePages;
  } else if (madvise(data_, size_, MADV_HUGEPAGE) == 0 && has_transparent_huge_pages()) {
    backing_ = Backing::kTransparentHugePages;
  }
  (void)madvise(data_, size_, MADV_DONTDUMP);
  return base::Status::ok();
}

// The first access of a page that is not resident faults: microseconds, and far more where memory is short.
base::Status Arena::populate(std::span<const Stretch> stretches) {
  for (const Stretch& stretch : stretches) {
    if (base::Status done = populate(stretch); !done) return done;
  }
  // The kernel may ignore the advice: a tmpfs has its own setting, and physical memory may be fragmented.
  if (backing_ == Backing::kTransparentHugePages && huge_bytes() == 0) backing_ = Backing::kSmallPages;
  return base::Status::ok();
}

base::Status Arena::populate(Stretch stretch) {
  const uint64_t begin = stretch.begin & ~(kPage - 1);
  const uint64_t length = std::min(rounded_up(stretch.end, kPage), size_) - begin;
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_ + begin, length, MADV_POPULATE_WRITE) == 0) return base::Status::ok();
  if (errno != EINVAL) {
    return base::Status::system_error("cannot have " + base::size_text(length) + " of memory resident for the store",
                                      errno);
  }
#endif
  EGRET_CHECK(data_ != nullptr);
  // A kernel before 5.14: touch each page by writing back the byte that is there.
  for (uint64_t offset = begin; offset < begin + length; offset += kPage) {
    volatile std::byte* const at = data_ + offset;
    *at = *at;
  }
  return base::Status::ok();
}

void Arena::release(uint64_t offset, uint64_t length) {
  if (is_file()) {
    (void)::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                      static_cast<off_t>(length));
  } else {
    (void)madvise(data_ + offset, length, MADV_DONTNEED);
  }
}

bool Arena::take_back(uint64_t offset, uint64_t length) {
  return !is_file() || ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0;
}

void Arena::keep_huge(bool keep) {
  if (backing_ == Backing::kTransparentHugePages) (void)madvise(data_, size_, keep ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

uint64_t Arena::huge_bytes() const {
  if (backing_ == Backing::kHugePages) return size_;
  std::ifstream maps("/proc/self/smaps");
  const auto first = reinterpret_cast<uintptr_t>(data_);
  bool is_ours = false;
  uint64_t kib = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long start = 0;
    unsigned long end = 0;
    unsigned long count = 0;
    char name[32];
    if (std::sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) {
      is_ours = start >= first && start < first + size_;
    } else if (is_ours && std::sscanf(line.c_str(), "%31[^:]: %lu kB", name, &count) == 2) {
      const std::string_view field(name);
      if (field == "AnonHugePages" || field == "ShmemPmdMapped" || field == "FilePmdMapped") kib += count;
    }
  }
  return kib * 1024;
}

Arena::Arena(Arena&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      backing_(other.backing_),
      file_was_(other.file_was_) {}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace egret::store
