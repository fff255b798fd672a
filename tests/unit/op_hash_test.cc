// The key's hash and the partition that it chooses.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "op/hash.h"

using namespace egret::op;

TEST_CASE("the hash is XXH3-64: figures that both sides of a rolling upgrade must agree on") {
  CHECK(hash_key("", 0) == 0x2d06800538d394c2);
  CHECK(hash_key("foo", 0) == 0xab6e5f64077e7d8a);
}

TEST_CASE("the hash depends on seed and key") {
  CHECK(hash_key("foo", 1) != hash_key("foo", 0));
  CHECK(hash_key("foo", 1) == hash_key(std::string("foo"), 1));
  CHECK(hash_key(std::string(250, 'k'), 1) != hash_key(std::string(249, 'k'), 1));
  CHECK(hash_key(std::string_view("a\0b", 3), 1) != hash_key(std::string_view("a\0c", 3), 1));
}

TEST_CASE("every hash has a partition, in order of the hash") {
  for (const uint32_t partitions : {1u, 2u, 3u, 7u, 255u, 256u}) {
    CHECK(partition_of(0, partitions) == 0);
    CHECK(partition_of(~uint64_t{0}, partitions) == partitions - 1);
    uint32_t last = 0;
    for (uint64_t high = 0; high < 0x1'0000'0000; high += 0x10'0001) {
      const uint32_t partition = partition_of(high << 32, partitions);
      CHECK(partition >= last);
      CHECK(partition < partitions);
      last = partition;
    }
  }
}

TEST_CASE("keys spread evenly over partitions") {
  constexpr uint32_t kPartitions = 7;
  constexpr int kKeys = 70'000;
  std::vector<int> counts(kPartitions);
  for (int i = 0; i < kKeys; ++i) ++counts[partition_of(hash_key("key:" + std::to_string(i), 12345), kPartitions)];
  for (const int count : counts) {
    CHECK(count > kKeys / kPartitions * 9 / 10);
    CHECK(count < kKeys / kPartitions * 11 / 10);
  }
}

TEST_CASE("the low bits that the store indexes by stay even within one partition") {
  constexpr uint32_t kPartitions = 4;
  std::vector<int> buckets(16);
  int total = 0;
  for (int i = 0; i < 64'000; ++i) {
    const uint64_t hash = hash_key("key:" + std::to_string(i), 99);
    if (partition_of(hash, kPartitions) != 2) continue;
    ++buckets[hash % 16];
    ++total;
  }
  for (const int count : buckets) {
    CHECK(count > total / 16 * 8 / 10);
    CHECK(count < total / 16 * 12 / 10);
  }
}
