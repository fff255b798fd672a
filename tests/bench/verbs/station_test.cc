// The check bytes of slots, their places, atomics' answers and the labels of SENDs. What needs queue pairs: tests/rdma.
#include <array>

#include <doctest/doctest.h>

#include "bench_verbs/pairs/pair_set.h"

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
  CHECK(shape.slot_bytes() == 256);
}

TEST_CASE("payloads are aligned, with a lead or without, and slots of the sweep take 64 bytes") {
  const Shape odd{.queue_pairs = 2, .max_size = 33, .depth = 3};
  const Shape small{.queue_pairs = 4096, .max_size = 32, .depth = 4, .lead = 0, .guard = 32};
  for (const Shape& shape : {odd, small}) {
    for (uint32_t slot = 0; slot < 3; ++slot) CHECK((shape.slot(1, slot) + shape.lead) % Shape::kAlignment == 0);
  }
  CHECK(small.slot_bytes() == 64);
  CHECK(small.bytes() == size_t{4096} * 4 * 64);
}

TEST_CASE("an atomic's word begins as the first bytes of its slot's pattern") {
  std::array<std::byte, 8> bytes{};
  fill_pattern(bytes.data(), bytes.size(), 7, 2, 3);
  CHECK(load_word(bytes.data()) == first_word(7, 2, 3));
  CHECK(first_word(7, 2, 3) != first_word(7, 3, 2));
}

TEST_CASE("answers of atomics are right in one order of bytes, which the first one tells") {
  constexpr uint64_t kWord = 0x0102030405060708;
  AtomicAnswers little;
  CHECK(little.take(kWord, kWord));
  CHECK_FALSE(little.are_big_endian());
  CHECK_FALSE(little.take(__builtin_bswap64(kWord), kWord));
  CHECK_FALSE(little.take(kWord + 1, kWord));
  CHECK(little.take(kWord, kWord));

  AtomicAnswers big;
  CHECK(big.take(__builtin_bswap64(kWord), kWord));
  CHECK(big.are_big_endian());
  CHECK(big.take(__builtin_bswap64(kWord + 1), kWord + 1));
  CHECK_FALSE(big.take(kWord, kWord));

  AtomicAnswers neither;
  CHECK_FALSE(neither.take(kWord + 1, kWord));
  CHECK_FALSE(neither.are_big_endian());
}

TEST_CASE("a SEND's label holds every queue pair and slot, and the end of the point's number") {
  const SendLabel last{5000, kMaxPairsOfSet - 1, 255};
  const SendLabel back = SendLabel::of(last.packed());
  CHECK(back.point == (5000 & SendLabel::kPointMask));
  CHECK(back.pair == kMaxPairsOfSet - 1);
  CHECK(back.slot == 255);
  CHECK(SendLabel{1, 2, 3}.packed() != SendLabel{1, 3, 2}.packed());
}
