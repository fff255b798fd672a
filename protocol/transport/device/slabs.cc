#include "transport/device/slabs.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <functional>

namespace egret::transport::device {

using base::Expected;

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlabPages = kHugePage / kPage;

}  // namespace

struct Slabs::Slab {
  Pages memory;
  int node = kAnyNode;
  std::bitset<kSlabPages> taken{};
  size_t most_free = kSlabPages;  // no more free pages than these are in a row: full slabs are not searched each time

  // The first `count` free pages in a row; kSlabPages: there are not so many.
  size_t find_free(size_t count) {
    if (count > most_free) return kSlabPages;
    size_t run = 0;
    for (size_t page = 0; page < kSlabPages; ++page) {
      run = taken[page] ? 0 : run + 1;
      if (run == count) return page + 1 - count;
    }
    most_free = count - 1;
    return kSlabPages;
  }
  void mark(size_t first, size_t count, bool is_taken) {
    for (size_t page = first; page < first + count; ++page) taken[page] = is_taken;
    if (!is_taken) most_free = kSlabPages;
  }
  bool has(const std::byte* at) const {
    return std::less_equal<>()(memory.data(), at) && std::less<>()(at, memory.data() + kHugePage);
  }
};

Slabs::Slabs() = default;
Slabs::~Slabs() = default;

// Never destroyed: parts may be given back at the very end of the process.
Slabs& Slabs::of_process() {
  static Slabs* const slabs = new Slabs;
  return *slabs;
}

Slabs::Part::~Part() {
  if (slabs_ != nullptr) slabs_->give_back(data_, pages_);
}

Expected<Slabs::Part> Slabs::take(size_t bytes, int node) {
  Part part;
  if (bytes > kHugePage / 2) {
    auto mapped = Pages::map(bytes, node);
    if (!mapped) return mapped.status();
    part.own_ = std::move(mapped.value());
    part.data_ = part.own_.data();
    return part;
  }
  const size_t count = std::max<size_t>((bytes + kPage - 1) / kPage, 1);
  const std::lock_guard lock(mutex_);
  size_t first = kSlabPages;
  const auto has_room = [&](const auto& slab) {
    return slab->node == node && (first = slab->find_free(count)) < kSlabPages;
  };
  auto at = std::ranges::find_if(slabs_, has_room);
  if (at == slabs_.end()) {
    auto mapped = Pages::map(kHugePage, node);
    if (!mapped) return mapped.status();
    at = slabs_.insert(slabs_.end(), std::make_unique<Slab>(Slab{.memory = std::move(mapped.value()), .node = node}));
    first = 0;
  }
  (*at)->mark(first, count, true);
  part.slabs_ = this;
  part.data_ = (*at)->memory.data() + first * kPage;
  part.pages_ = count;
  return part;
}

// Zeroed here, so that one session's bytes do not lie about until another takes them.
void Slabs::give_back(std::byte* data, size_t pages) {
  std::memset(data, 0, pages * kPage);
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(slabs_, [&](const auto& slab) { return slab->has(data); });
  Slab& slab = **at;
  slab.mark(static_cast<size_t>(data - slab.memory.data()) / kPage, pages, false);
  if (slab.taken.none()) slabs_.erase(at);
}

size_t Slabs::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return slabs_.size() * kHugePage;
}

}  // namespace egret::transport::device
