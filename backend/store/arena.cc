#include "store/arena.h"

#include <cerrno>

#include <sys/mman.h>

#include "base/text.h"

namespace egret::store {

namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2u << 20;
}  // namespace

base::Expected<Arena> Arena::reserve(uint64_t bytes) {
  Arena arena;
  arena.size_ = bytes & ~(kPage - 1);
  arena.mapped_ = arena.size_ + kHugePage;
  void* mapping =
      mmap(nullptr, arena.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return base::Status::system_error("cannot reserve " + base::size_text(arena.mapped_) + " for the store", errno);
  }
  arena.mapping_ = mapping;
  const uint64_t misaligned = reinterpret_cast<uint64_t>(mapping) % kHugePage;
  arena.data_ = static_cast<std::byte*>(mapping) + (kHugePage - misaligned) % kHugePage;
  // Advice: without huge pages the store is slower, not wrong.
  (void)madvise(arena.data_, arena.size_, MADV_HUGEPAGE);
  (void)madvise(arena.data_, arena.size_, MADV_DONTDUMP);
  return arena;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace egret::store
