// The heap on its own: blocks never overlap, what is freed is merged, and the crossing map knows where blocks start.
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "store/heap.h"

namespace egret::store {

namespace {
struct HeapHarness {
  static constexpr uint32_t kUnits = 16 * Heap::kGranuleUnits;  // 1 MiB
  static constexpr uint32_t kBegin = 16;

  void check() {
    std::string why;
    const bool is_sound = heap.check(&why);
    REQUIRE_MESSAGE(is_sound, why);
  }

  std::vector<uint64_t> memory = std::vector<uint64_t>(kUnits);
  std::vector<uint16_t> crossing = std::vector<uint16_t>(16);
  Heap heap{reinterpret_cast<std::byte*>(memory.data()), crossing.data(), kBegin, kUnits};
};
}  // namespace

TEST_CASE("sizes are rounded up by at most a 32nd, and rounding again changes nothing") {
  for (uint64_t units = 1; units < 100'000; ++units) {
    const uint32_t rounded = Heap::rounded(units);
    REQUIRE(rounded >= units);
    REQUIRE((rounded <= units + units / 32 || rounded == Heap::kMinUnits));
    REQUIRE(Heap::rounded(rounded) == rounded);
  }
}

TEST_CASE("freed blocks of all sizes become one piece again") {
  HeapHarness h;
  std::vector<ItemRef> blocks;
  while (true) {
    const ItemRef ref = h.heap.allocate(Heap::rounded(5 + blocks.size() % 200));
    if (!ref) break;
    blocks.push_back(ref);
  }
  h.check();
  for (size_t i = 0; i < blocks.size(); i += 2) h.heap.release(blocks[i]);
  h.check();
  CHECK(!h.heap.allocate(Heap::rounded(5000)));
  for (size_t i = 1; i < blocks.size(); i += 2) h.heap.release(blocks[i]);
  h.check();
  CHECK(h.heap.used_units() == 0);
  CHECK(h.heap.top() == h.heap.begin());
}

TEST_CASE("random allocating, shrinking and freeing keeps the heap whole and contents untouched") {
  std::mt19937_64 random(11);
  HeapHarness h;
  std::vector<std::pair<ItemRef, uint8_t>> blocks;
  const auto bytes_of = [&](ItemRef ref) { return h.heap.item(ref).extra(); };
  const auto length_of = [&](ItemRef ref) { return h.heap.item(ref).units * kUnit - sizeof(Item); };
  for (int step = 0; step < 60'000; ++step) {
    const uint64_t kind = random() % 10;
    if (kind < 5) {
      const ItemRef ref = h.heap.allocate(Heap::rounded(4 + random() % (uint64_t{1} << (random() % 13))));
      if (!ref) continue;
      const auto mark = static_cast<uint8_t>(random());
      std::memset(bytes_of(ref), mark, length_of(ref));
      blocks.emplace_back(ref, mark);
    } else if (!blocks.empty()) {
      const size_t which = random() % blocks.size();
      const auto [ref, mark] = blocks[which];
      for (uint64_t i = 0; i < length_of(ref); i += 7) REQUIRE(static_cast<uint8_t>(bytes_of(ref)[i]) == mark);
      if (kind == 5) {
        h.heap.shrink(ref, Heap::rounded(4 + random() % h.heap.item(ref).units));
      } else {
        h.heap.release(ref);
        blocks[which] = blocks.back();
        blocks.pop_back();
      }
    }
    if (step % 100 == 0) {
      h.check();
      for (const auto& block : blocks) {
        const ItemRef covering = h.heap.block_covering(block.first.unit + h.heap.item(block.first).units - 1);
        REQUIRE(covering == block.first);
      }
    }
  }
}

TEST_CASE("the end comes down only over wilderness") {
  HeapHarness h;
  const ItemRef low = h.heap.allocate(Heap::rounded(100));
  CHECK(h.heap.lower_end());
  CHECK(h.heap.end() == HeapHarness::kUnits - Heap::kGranuleUnits);
  ItemRef last = low;
  while (const ItemRef ref = h.heap.allocate(Heap::rounded(1000))) last = ref;
  CHECK(!h.heap.lower_end());
  CHECK(h.heap.block_covering(h.heap.last_granule_start()).unit <= h.heap.last_granule_start());
  h.heap.release(last);
  h.check();
}

}  // namespace egret::store
