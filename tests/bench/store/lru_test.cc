#include "bench_store/peer/lru.h"

#include <doctest/doctest.h>

using namespace egret::bench_store;

TEST_CASE("chunks are those of memcached -vv") {
  CHECK(memcached_chunk(16, 32) == 120);
  CHECK(memcached_chunk(16, 0) == 96);
  CHECK(memcached_chunk(16, 200) == 304);
  CHECK(memcached_chunk(16, 1024) == 1184);
}

TEST_CASE("the oldest goes first, and no more than must") {
  LruModel lru(300, 10);
  lru.advance(1);
  for (const uint32_t key : {1, 2, 3}) lru.set(key, 100, 0);
  lru.set(4, 100, 0);
  CHECK_FALSE(lru.get(1));
  CHECK(lru.get(2));
  CHECK(lru.get(3));
  CHECK(lru.get(4));
  CHECK(lru.item_count() == 3);
  lru.set(5, 200, 0);
  CHECK(lru.get(5));
  CHECK(lru.item_count() == 2);
}

TEST_CASE("an item that is read twice outlives those that are not, one that is read once does not") {
  LruModel lru(1000, 100);
  lru.advance(1);
  for (uint32_t key = 0; key < 10; ++key) lru.set(key, 100, 0);
  for (const uint32_t key : {0, 0, 1}) CHECK(lru.get(key));
  for (uint32_t key = 10; key < 18; ++key) lru.set(key, 100, 0);
  CHECK(lru.get(0));
  CHECK_FALSE(lru.get(1));
}

TEST_CASE("an item that is read twice while it is new outlives the new ones after it") {
  LruModel lru(1000, 100);
  lru.advance(1);
  for (const uint32_t key : {1, 2, 3, 4, 5, 6, 7, 8, 9, 0}) lru.set(key, 100, 0);
  for (int i = 0; i < 2; ++i) CHECK(lru.get(0));
  for (uint32_t key = 10; key < 25; ++key) lru.set(key, 100, 0);
  CHECK(lru.get(0));
  CHECK_FALSE(lru.get(10));
}

TEST_CASE("what was popular goes when it is read no more") {
  LruModel lru(1000, 100);
  lru.advance(1);
  lru.set(0, 100, 0);
  for (int i = 0; i < 10; ++i) CHECK(lru.get(0));
  for (uint32_t key = 1; key < 100; ++key) {
    lru.advance(1 + key);
    lru.set(key, 100, 0);
    CHECK(lru.get(key));
    CHECK(lru.get(key));
  }
  CHECK_FALSE(lru.get(0));
}

TEST_CASE("an overwrite counts once") {
  LruModel lru(300, 10);
  for (int i = 0; i < 10; ++i) lru.set(1, 100, 0);
  lru.set(2, 100, 0);
  lru.set(3, 100, 0);
  CHECK(lru.item_count() == 3);
}

TEST_CASE("an item goes in the second it expires, not one that has been overwritten since") {
  LruModel lru(1000, 10);
  lru.advance(100);
  lru.set(1, 100, 110);
  lru.set(2, 100, 110);
  lru.set(2, 100, 120);
  lru.advance(109);
  CHECK(lru.get(1));
  lru.advance(110);
  CHECK_FALSE(lru.get(1));
  CHECK(lru.get(2));
  lru.advance(130);
  CHECK(lru.item_count() == 0);
}
