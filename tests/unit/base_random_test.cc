// Random bytes: every byte is filled, whatever the length, and no two draws are the same.
#include <algorithm>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace egret::base;

TEST_CASE("every byte of a range is random, and nothing beside it is touched") {
  constexpr std::byte kUntouched{0xaa};
  for (const size_t size : {size_t{0}, size_t{1}, size_t{32}, size_t{4096}}) {
    // A byte that is never filled keeps its value in each of 64 draws; a filled one does so once in 256^64.
    std::vector<bool> was_filled(size, false);
    for (int draw = 0; draw < 64; ++draw) {
      std::vector<std::byte> bytes(size + 2, kUntouched);
      fill_random(std::span(bytes).subspan(1, size));
      for (size_t i = 0; i < size; ++i) was_filled[i] = was_filled[i] || bytes[i + 1] != kUntouched;
      CHECK(bytes.front() == kUntouched);
      CHECK(bytes.back() == kUntouched);
    }
    CHECK(std::ranges::all_of(was_filled, [](bool filled) { return filled; }));
  }
}

TEST_CASE("numbers do not repeat") {
  std::set<uint64_t> numbers;
  for (int i = 0; i < 1000; ++i) numbers.insert(random_u64());
  CHECK(numbers.size() == 1000);
}
