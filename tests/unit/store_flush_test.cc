// flush_all, by memcached's rule: see backend/store/flush.cc.
#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

TEST_CASE("flush_all hides what was stored before it, even in the same second, and nothing stored after it") {
  for (const int64_t exptime : {0, -1, -100}) {
    Harness h;
    h.set("old", "1");
    h.flush_all(exptime);
    CHECK(h.get("old") == "-");
    h.set("new", "2");
    CHECK(h.get("new") == "2");
    h.pass_seconds(1);
    CHECK(h.get("new") == "2");
    CHECK(h.stat(StatId::kGetFlushed) == 1);
    CHECK(h.stat(StatId::kCmdFlush) == 1);
  }
}

TEST_CASE("hidden items are missing to every op") {
  Harness h;
  for (const char* key : {"a", "b", "c", "d", "e"}) h.set(key, "1");
  const uint64_t version = h.gets("a").version;
  h.flush_all();
  CHECK(!h.store->pin("a", h.make(op::OpCode::kGet, "a").hash));
  op::Op chunk = h.make(op::OpCode::kChunk, "a");
  chunk.version = version;
  chunk.length = 1;
  CHECK(h.run(chunk).code == ResultCode::kChanged);
  CHECK(h.arith("b", 1).code == ResultCode::kMiss);
  CHECK(h.erase("c") == ResultCode::kMiss);
  CHECK(h.store_as(op::SetMode::kAppend, "d", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(op::SetMode::kAdd, "e", "x") == ResultCode::kStored);
}

TEST_CASE(
    "a delayed flush fires by whole seconds, as memcached's does: when second now + N - 1 begins, and through it") {
  Harness h;
  h.set("old", "1");
  h.flush_all(3);
  CHECK(h.get("old") == "1");
  h.pass_seconds(1);
  h.set("young", "2");
  CHECK(h.get("old") == "1");
  h.pass_seconds(1);
  CHECK(h.get("old") == "-");
  CHECK(h.get("young") == "-");
  h.set("same", "3");
  CHECK(h.get("same") == "-");
  h.pass_seconds(1);
  CHECK(h.get("same") == "-");
  h.set("after", "4");
  CHECK(h.get("after") == "4");
  h.pass_seconds(10);
  CHECK(h.get("after") == "4");
}

TEST_CASE("an overdue flush fires before the first op after a long sleep") {
  Harness h;
  h.set("old", "1");
  h.flush_all(3);
  h.pass_seconds(1000);
  h.set("new", "2");
  CHECK(h.get("old") == "-");
  CHECK(h.get("new") == "2");
}

TEST_CASE("a later flush takes the place of one that is pending") {
  Harness h;
  h.set("a", "1");
  h.flush_all(3);
  h.flush_all(100);
  h.pass_seconds(10);
  CHECK(h.get("a") == "1");
  h.flush_all(0);
  CHECK(h.get("a") == "-");
  h.set("a", "2");
  h.pass_seconds(200);
  CHECK(h.get("a") == "2");
}

TEST_CASE("a delayed flush does not bring back what an earlier one has hidden") {
  Harness h;
  h.set("a", "1");
  h.flush_all();
  h.flush_all(100);
  CHECK(h.get("a") == "-");
}

TEST_CASE("flush at a point in time: ahead it waits, lately past it acts now, before the start it does nothing") {
  Harness h;
  const int64_t now = h.clock.unix_seconds();
  h.set("a", "1");
  h.flush_all(now - 1000);
  CHECK(h.get("a") == "1");
  h.flush_all(now + 5);
  h.pass_seconds(3);
  CHECK(h.get("a") == "1");
  h.pass_seconds(1);
  CHECK(h.get("a") == "-");
  h.pass_seconds(1);
  h.set("a", "2");
  h.flush_all(now);
  CHECK(h.get("a") == "-");
  h.set("a", "3");
  CHECK(h.get("a") == "3");
}

TEST_CASE("flush, in the second of a firing flush, lets what follows live") {
  Harness h;
  h.set("a", "1");
  h.flush_all(1);
  CHECK(h.get("a") == "-");
  h.set("a", "2");
  CHECK(h.get("a") == "-");
  h.flush_all();
  h.set("a", "3");
  CHECK(h.get("a") == "3");
  h.pass_seconds(2);
  CHECK(h.get("a") == "3");
}

TEST_CASE("who asks right behind a flush or an end of time learns the reason, however idle the store is") {
  Harness h;
  h.set("flushed", "v");
  h.flush_all();
  h.set("expired", "v", 2'678'400);  // a point in time, long past
  while (h.store->idle_step()) {
  }
  CHECK(h.get("flushed") == "-");
  CHECK(h.get("expired") == "-");
  CHECK(h.stat(op::StatId::kGetFlushed) == 1);
  CHECK(h.stat(op::StatId::kGetExpired) == 1);
}

}  // namespace egret::store
