#include "bench/keyspace.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

using namespace egret::bench;

namespace {

std::string value_of(uint32_t key, uint64_t version, size_t size) {
  std::string value(size, '?');
  write_value(value.data(), size, key, version);
  return value;
}

ValueVerdict judge(const std::string& value, uint32_t key) {
  return judge_value(value.data(), value.size(), key);
}

}  // namespace

TEST_CASE("keys have their size, differ, and are what their number says") {
  CHECK(Keyspace::min_key_size(10) == 2);
  CHECK(Keyspace::min_key_size(11) == 3);
  const Keyspace keys(11, 3);
  CHECK(keys.key(0) == "k00");
  CHECK(keys.key(10) == "k10");
}

TEST_CASE("a value of any size is recognised as its key's") {
  for (size_t size = 0; size < 300; ++size) CHECK(judge(value_of(77, 5, size), 77) == ValueVerdict::kGood);
  CHECK(judge(value_of(77, 5, 102'400), 77) == ValueVerdict::kGood);
}

TEST_CASE("another key's value is seen, down to one byte") {
  for (const size_t size : {1, 7, 8, 16, 64, 100, 1000}) {
    CHECK(judge(value_of(78, 5, size), 77) == ValueVerdict::kOtherKey);
  }
}

TEST_CASE("a short value that is put together from two is seen at any word") {
  for (const size_t size : {17, 24, 32, 50, 64, 300}) {
    const std::string good = value_of(77, 5, size);
    const std::string newer = value_of(77, 6, size);
    for (size_t cut = 16; cut < std::min<size_t>(size, 64); cut += 8) {
      CAPTURE(size);
      CAPTURE(cut);
      CHECK(judge(good.substr(0, cut) + newer.substr(cut), 77) == ValueVerdict::kTorn);
      CHECK(judge(newer.substr(0, cut) + good.substr(cut), 77) == ValueVerdict::kTorn);
    }
  }
}

TEST_CASE("a cache line of another version, another key or another place is seen") {
  for (const size_t size : {72, 100, 128, 130, 1000, 1029}) {
    const std::string good = value_of(77, 5, size);
    const std::string newer = value_of(77, 6, size);
    const std::string other = value_of(78, 5, size);
    for (size_t line = 64; line < size; line += 64) {
      const size_t bytes = std::min<size_t>(64, size - line);
      for (const std::string* source : {&newer, &other}) {
        std::string torn = good;
        torn.replace(line, bytes, *source, line, bytes);
        CHECK(judge(torn, 77) == ValueVerdict::kTorn);
      }
      if (line + 128 <= size) {
        std::string shifted = good;
        shifted.replace(line, 64, good, line + 64, 64);
        CHECK(judge(shifted, 77) == ValueVerdict::kTorn);
      }
    }
  }
}
