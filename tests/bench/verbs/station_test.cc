// The check bytes of a station, and the places of its slots. Its other functions need queue pairs: tests/rdma.
#include "bench_verbs/station.h"

#include <array>

#include <doctest/doctest.h>

using namespace egret::bench_verbs;

TEST_CASE("a pattern is recognised, and each byte that is not its own counts") {
  std::array<std::byte, 1000> bytes{};
  fill_pattern(bytes.data(), bytes.size(), 7, 2, 3);
  CHECK(wrong_bytes(bytes.data(), bytes.size(), 7, 2, 3) == 0);
  CHECK(wrong_bytes(bytes.data(), 333, 7, 2, 3) == 0);
  for (const size_t at : {size_t{0}, size_t{511}, size_t{999}}) {
    bytes[at] ^= std::byte{1};
    CHECK(wrong_bytes(bytes.data(), bytes.size(), 7, 2, 3) == 1);
    bytes[at] ^= std::byte{1};
  }
}

TEST_CASE("bytes of another point, queue pair or slot, shifted or poisoned ones, are nearly all wrong") {
  std::array<std::byte, 1008> bytes{};
  fill_pattern(bytes.data(), bytes.size(), 7, 2, 3);
  const auto differs = [&](size_t from, uint32_t point, uint32_t pair, uint32_t slot) {
    return wrong_bytes(bytes.data() + from, 1000, point, pair, slot) > 950;
  };
  CHECK(differs(0, 8, 2, 3));
  CHECK(differs(0, 7, 3, 3));
  CHECK(differs(0, 7, 2, 4));
  CHECK(differs(0, 2, 7, 3));
  CHECK(differs(8, 7, 2, 3));
  poison(bytes.data(), bytes.size());
  CHECK(differs(0, 7, 2, 3));
}

TEST_CASE("poison is recognised, and each byte that is not poison counts") {
  std::array<std::byte, 64> bytes{};
  CHECK(unpoisoned_bytes(bytes.data(), bytes.size()) == 64);
  poison(bytes.data(), bytes.size());
  CHECK(unpoisoned_bytes(bytes.data(), bytes.size()) == 0);
  bytes[63] = std::byte{0};
  CHECK(unpoisoned_bytes(bytes.data(), bytes.size()) == 1);
}

TEST_CASE("slots do not overlap and fill the memory") {
  const Shape shape{.queue_pairs = 3, .max_size = 100, .depth = 4};
  size_t expected = 0;
  for (uint32_t pair = 0; pair < 3; ++pair) {
    for (uint32_t slot = 0; slot < 4; ++slot, expected += shape.slot_bytes()) CHECK(shape.slot(pair, slot) == expected);
  }
  CHECK(shape.bytes() == expected);
  CHECK(shape.slot_bytes() == kRequestBytes + 100 + Shape::kGuard);
}
