// Parts of shared pages of 2 MiB: they are apart, zeroed, packed, and slabs go when nothing of them is taken.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "transport/device/slabs.h"

using egret::transport::device::kAnyNode;
using egret::transport::device::kHugePage;
using egret::transport::device::Slabs;

namespace {

constexpr size_t kPage = 4096;

Slabs::Part taken(Slabs& slabs, size_t bytes, int node = kAnyNode) {
  auto part = slabs.take(bytes, node);
  REQUIRE(part);
  return std::move(part.value());
}

uintptr_t slab_of(const Slabs::Part& part) {
  return reinterpret_cast<uintptr_t>(part.data()) / kHugePage;
}

bool is_zero(const std::byte* at, size_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

TEST_CASE("small parts share one page of 2 MiB, each aligned to 4 KiB, and none has a byte of another") {
  Slabs slabs;
  const Slabs::Part one = taken(slabs, 1);
  const Slabs::Part two = taken(slabs, kPage + 1);
  const Slabs::Part three = taken(slabs, kHugePage / 2);
  CHECK(slab_of(one) == slab_of(two));
  CHECK(slab_of(one) == slab_of(three));
  CHECK(two.data() - one.data() == kPage);
  CHECK(three.data() - two.data() == 2 * kPage);
  CHECK(reinterpret_cast<uintptr_t>(one.data()) % kPage == 0);
  CHECK(slabs.mapped_bytes() == kHugePage);
}

TEST_CASE("what is more than half a slab has a mapping of its own") {
  Slabs slabs;
  const Slabs::Part large = taken(slabs, kHugePage / 2 + 1);
  CHECK(slabs.mapped_bytes() == 0);
  CHECK(is_zero(large.data(), kHugePage / 2 + 1));
}

TEST_CASE("another node's part is in another slab") {
  Slabs slabs;
  const Slabs::Part any = taken(slabs, kPage);
  const Slabs::Part of_node = taken(slabs, kPage, 0);
  CHECK(slab_of(any) != slab_of(of_node));
  CHECK(slabs.mapped_bytes() == 2 * kHugePage);
}

TEST_CASE("a part that was used is zeroed when another gets its place, and a slab goes with its last part") {
  Slabs slabs;
  const Slabs::Part stays = taken(slabs, kPage);
  std::byte* place = nullptr;
  {
    const Slabs::Part used = taken(slabs, 3 * kPage);
    place = used.data();
    std::memset(place, 0xA5, 3 * kPage);
  }
  CHECK(is_zero(place, 3 * kPage));
  {
    const Slabs::Part again = taken(slabs, 3 * kPage);
    CHECK(again.data() == place);
    const Slabs::Part further = taken(slabs, kHugePage / 2);
    const Slabs::Part in_next = taken(slabs, kHugePage / 2);
    CHECK(slabs.mapped_bytes() == 2 * kHugePage);
  }
  CHECK(slabs.mapped_bytes() == kHugePage);
}

TEST_CASE("parts that come and go stay apart, and all slabs are unmapped at the end") {
  std::mt19937_64 random(20);
  Slabs slabs;
  std::map<std::byte*, std::pair<Slabs::Part, size_t>> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() < 40 && random() % 5 < 3) {
      const size_t bytes = 1 + random() % (64 * kPage);
      Slabs::Part part = taken(slabs, bytes);
      std::byte* const at = part.data();
      REQUIRE(is_zero(at, bytes));
      const auto next = live.upper_bound(at);
      REQUIRE((next == live.end() || at + bytes <= next->first));
      REQUIRE((next == live.begin() || std::prev(next)->first + std::prev(next)->second.second <= at));
      at[0] = at[bytes - 1] = std::byte{1};
      live.emplace(at, std::pair(std::move(part), bytes));
    } else if (!live.empty()) {
      live.erase(std::next(live.begin(), static_cast<ptrdiff_t>(random() % live.size())));
    }
  }
  CHECK(slabs.mapped_bytes() >= kHugePage);
  live.clear();
  CHECK(slabs.mapped_bytes() == 0);
}

TEST_CASE("a thousand small sessions of 16 lanes lie in 90 MB") {
  Slabs slabs;
  std::vector<Slabs::Part> parts;
  for (int session = 0; session < 1000; ++session) {
    parts.push_back(taken(slabs, 16 * (64 + 2 * 1216)));
    parts.push_back(taken(slabs, 16 * 2 * 1216));
  }
  CHECK(slabs.mapped_bytes() <= 90'000'000);
}
