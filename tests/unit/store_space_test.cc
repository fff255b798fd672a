// How much of its memory a full store makes use of, for values of one size, and after a shift from one size to another.
// Prints the shares; `-s` shows them.
#include <random>

#include <doctest/doctest.h>

#include "sanitized.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {

struct Shares {
  double used;     // pages in use
  double items;    // what items take up, their overhead included, the index not
  double payload;  // keys and values
};

class Filling {
 public:
  explicit Filling(uint64_t memory) : memory_(memory), h_(small_store(memory, 2u << 20)) {}
  // Stores new items of that length, so many bytes in all. Every third is read often, so that it outlives the others.
  void fill(size_t length, uint64_t bytes) {
    const std::string value(length, 'v');
    char key[17];
    for (uint64_t done = 0; done < bytes; done += length + 64) {
      (void)std::snprintf(key, sizeof key, "%016llx", static_cast<unsigned long long>(number_++));
      REQUIRE(h_.set(key, value) == ResultCode::kStored);
      if (random_() % 3 == 0) h_.get(key), h_.get(key), h_.get(key);
      if (number_ % 1024 == 0) REQUIRE(h_.store->memory().used <= memory_);
    }
  }
  Shares shares(const std::string& what) {
    // A record has a head and perhaps a list beside its payload: all that is not that is counted by reading back.
    uint64_t payload = 0;
    for (uint64_t i = 0; i < number_; ++i) {
      char key[17];
      (void)std::snprintf(key, sizeof key, "%016llx", static_cast<unsigned long long>(i));
      op::Op peek = h_.make(op::OpCode::kGet, {key, 16});
      peek.options = op::kPeek | op::kNoValue;
      const op::Result got = h_.run(peek);
      if (got.code == ResultCode::kHit) payload += 16 + got.total_length;
    }
    const Shares made{share(h_.store->memory().used), share(h_.stat(StatId::kBytes)), share(payload)};
    MESSAGE(what << ": used " << made.used << ", items " << made.items << ", payload " << made.payload
                 << ", large pages " << h_.stat(StatId::kLargePages) << ", log " << h_.stat(StatId::kSegments)
                 << ", index " << h_.stat(StatId::kIndexPages));
    h_.check();
    return made;
  }

 private:
  double share(uint64_t bytes) const { return static_cast<double>(bytes) / static_cast<double>(memory_); }

  const uint64_t memory_;
  Harness h_;
  std::mt19937_64 random_{1};
  uint64_t number_ = 0;
};
}  // namespace

TEST_CASE("a full store uses its memory, whatever the size of values") {
  // Millions of the smallest items take minutes under a sanitizer, which has seen all that they do after the first fill.
  const uint64_t memory = kSanitized ? 24u << 20 : 64u << 20;
  for (const size_t length : {10, 100, 1'024, 2'048, 5 * 1'024, 8'000, 8'192, 9'000, 10 * 1'024, 16'384, 20'000, 40'000,
                              60 * 1'024, 100 * 1'024, 1 << 20}) {
    Filling store(memory);
    store.fill(length, 3 * memory);
    const Shares made = store.shares(std::to_string(length));
    CHECK(made.used > 0.9);
    if (length >= 1024) CHECK(made.payload > 0.8);
  }
}

TEST_CASE("a full store uses its memory after a shift from one size to another") {
  const size_t sizes[] = {100, 5 * 1'024, 10 * 1'024, 60 * 1'024, 1 << 20};
  for (const size_t from : sizes) {
    for (const size_t to : sizes) {
      if (from == to) continue;
      Filling store(32u << 20);
      store.fill(from, 64u << 20);
      store.fill(to, 48u << 20);
      const Shares made = store.shares(std::to_string(from) + " -> " + std::to_string(to));
      CHECK(made.used > 0.9);
      CHECK(made.items > 0.7);
    }
  }
}

}  // namespace egret::store
