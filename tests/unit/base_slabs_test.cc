// Slabs: objects have places of their own, and memory of many that have gone goes back to the system.
#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "base/slabs.h"
#include "sanitized.h"

using egret::base::Slabs;

namespace {

constexpr size_t kBytes = 1000;
constexpr size_t kMany = 500;

struct Object {
  explicit Object(int& count, bool fails = false) : alive(count) {
    if (fails) throw std::runtime_error("no");
    ++alive;
  }
  ~Object() { --alive; }
  int& alive;
};

}  // namespace

TEST_CASE("objects do not overlap, and are aligned for any type") {
  Slabs slabs(kBytes);
  std::vector<void*> taken;
  for (size_t i = 0; i < kMany; ++i) {
    taken.push_back(slabs.take());
    std::memset(taken.back(), static_cast<int>(i), kBytes);
    CHECK(reinterpret_cast<uintptr_t>(taken.back()) % alignof(std::max_align_t) == 0);
  }
  CHECK(std::set<void*>(taken.begin(), taken.end()).size() == kMany);
  for (size_t i = 0; i < kMany; ++i) {
    const std::vector<unsigned char> expected(kBytes, static_cast<unsigned char>(i));
    CHECK(std::memcmp(taken[i], expected.data(), kBytes) == 0);
    Slabs::give(taken[i]);
  }
}

TEST_CASE("a place that was given is taken again" * doctest::skip(egret::kSanitized)) {
  Slabs slabs(kBytes);
  void* const first = slabs.take();
  void* const second = slabs.take();
  Slabs::give(first);
  CHECK(slabs.take() == first);
  Slabs::give(first);
  Slabs::give(second);
}

TEST_CASE("slabs without an object go back to the system, but one" * doctest::skip(egret::kSanitized)) {
  Slabs slabs(kBytes);
  std::vector<void*> taken;
  for (size_t i = 0; i < kMany; ++i) taken.push_back(slabs.take());
  const size_t most = slabs.slabs();
  CHECK(most >= kMany * kBytes / Slabs::kSlabBytes);
  void* const stays = taken.back();
  taken.pop_back();
  for (void* object : taken) Slabs::give(object);
  CHECK(slabs.slabs() <= 2);  // the one of the object that stays, and perhaps one with room
  void* const next = slabs.take();
  CHECK(slabs.slabs() <= 2);
  Slabs::give(next);
  Slabs::give(stays);
  CHECK(slabs.slabs() == 1);
}

TEST_CASE("an object whose constructor throws leaves its place") {
  Slabs slabs(sizeof(Object));
  int alive = 0;
  {
    const auto one = slabs.make<Object>(alive);
    CHECK_THROWS_AS(slabs.make<Object>(alive, true), std::runtime_error);
    CHECK(alive == 1);
  }
  CHECK(alive == 0);
}
