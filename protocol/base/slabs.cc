#include "base/slabs.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include "base/check.h"

namespace egret::base {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kUsesHeap = true;
#elif defined(__has_feature)
constexpr bool kUsesHeap = __has_feature(address_sanitizer);
#else
constexpr bool kUsesHeap = false;
#endif

constexpr size_t kAlignment = alignof(std::max_align_t);

constexpr size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// At the beginning of its memory.
struct alignas(kAlignment) Slabs::Slab {
  Slabs* owner;
  bool is_mapped;
  size_t index;       // in the owner's slabs_
  std::byte* unused;  // from there on nothing was ever taken, so that no page of it is resident
  Place* free = nullptr;
  size_t taken = 0;

  bool has_room() const {
    const std::byte* const end = reinterpret_cast<const std::byte*>(this) + kSlabBytes;
    return free != nullptr || unused + owner->place_bytes_ <= end;
  }
};

Slabs::Slabs(size_t object_bytes) : place_bytes_(sizeof(Place) + aligned(object_bytes)) {
  EGRET_CHECK(object_bytes <= kSlabBytes / 4);
}

Slabs::~Slabs() {
  for (Slab* slab : slabs_) release(slab, slab->is_mapped);
}

void Slabs::release(void* memory, bool is_mapped) {
  if (is_mapped) {
    ::munmap(memory, kSlabBytes);
  } else {
    ::operator delete(memory);
  }
}

Slabs::Slab& Slabs::slab_with_room() {
  while (full_ < slabs_.size() && !slabs_[full_]->has_room()) ++full_;
  if (full_ < slabs_.size()) return *slabs_[full_];
  void* memory = ::mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool is_mapped = memory != MAP_FAILED;
  if (!is_mapped) memory = ::operator new(kSlabBytes);  // the system maps no more: a client need not go for that
  try {
    slabs_.push_back(nullptr);
  } catch (...) {
    release(memory, is_mapped);
    throw;
  }
  slabs_.back() = new (memory) Slab{.owner = this,
                                    .is_mapped = is_mapped,
                                    .index = slabs_.size() - 1,
                                    .unused = static_cast<std::byte*>(memory) + sizeof(Slab)};
  return *slabs_.back();
}

void* Slabs::take() {
  if constexpr (kUsesHeap) return ::operator new(place_bytes_);
  Slab& slab = slab_with_room();
  ++slab.taken;
  if (slab.free != nullptr) return std::exchange(slab.free, slab.free->next_free)->object();
  auto* const place =
      new (std::exchange(slab.unused, slab.unused + place_bytes_)) Place{.slab = &slab, .next_free = nullptr};
  return place->object();
}

void Slabs::give(void* object) {
  if constexpr (kUsesHeap) return ::operator delete(object);
  Place* const place = static_cast<Place*>(object) - 1;
  Slab& slab = *place->slab;
  place->next_free = std::exchange(slab.free, place);
  Slabs& owner = *slab.owner;
  owner.full_ = std::min(owner.full_, slab.index);
  if (--slab.taken == 0) owner.drop_if_spare(slab);
}

// One slab with room stays: who comes and goes alone shall not cost two system calls.
void Slabs::drop_if_spare(Slab& slab) {
  const auto has_room = [&slab](const Slab* each) { return each != &slab && each->has_room(); };
  if (std::none_of(slabs_.begin() + static_cast<std::ptrdiff_t>(full_), slabs_.end(), has_room)) return;
  slabs_[slab.index] = slabs_.back();
  slabs_[slab.index]->index = slab.index;
  slabs_.pop_back();
  full_ = std::min(full_, slabs_.size());
  release(&slab, slab.is_mapped);
}

}  // namespace egret::base
