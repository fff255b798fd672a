// What the meta commands add to memcached's semantics, op by op, through the store's public face: stale items and who
// is to make them anew, items made by a reader, CAS given by the client, and what an item says of itself.
#include <functional>

#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;
using op::StatId;

namespace {

constexpr uint8_t kNothing = 0;
// What a reader by a meta command asks for. (A classic get tells of no marks and wins nothing.)
constexpr uint16_t kMeta = op::kWantMeta | op::kWantCas;

using Fill = std::function<void(op::Op&)>;

struct Meta : Harness {
  explicit Meta(StoreConfig wanted = {}) : Harness(wanted) {}

  op::Result meta_get(std::string_view key, uint16_t options = 0, const Fill& fill = {}) {
    op::Op made = make(op::OpCode::kGet, key);
    if (fill) fill(made);
    made.options = static_cast<uint16_t>(kMeta | options);
    return run(made);
  }
  // The marks but the one of having been read.
  uint8_t marks(std::string_view key, uint16_t options = 0, const Fill& fill = {}) {
    return static_cast<uint8_t>(meta_get(key, options, fill).marks & ~op::kFetched);
  }
  uint8_t recache(std::string_view key, int64_t below) {
    return marks(key, op::kRecache, [&](op::Op& o) { o.recache_below = below; });
  }
  op::Result vivify(std::string_view key, int64_t exptime) {
    return meta_get(key, op::kVivify, [&](op::Op& o) { o.vivify_exptime = exptime; });
  }
  op::Result peek(std::string_view key) { return meta_get(key, op::kPeek); }
  uint64_t cas_of(std::string_view key) { return peek(key).cas; }
  int64_t ttl_of(std::string_view key) { return peek(key).ttl; }

  op::Result meta_set(std::string_view key, std::string_view value, uint16_t options, const Fill& fill) {
    op::Op made = make_set(key, value);
    made.options = options;
    fill(made);
    return run(made);
  }
  op::Result stale_set(std::string_view key, std::string_view value, uint64_t unique, int64_t exptime = 0) {
    return meta_set(key, value, op::kCompareCas | op::kInvalidate,
                    [&](op::Op& o) { o.cas = unique, o.exptime = exptime, o.client_flags = 3; });
  }
  op::ResultCode set_with_cas(std::string_view key, std::string_view value, uint64_t unique) {
    return meta_set(key, value, op::kExplicitCas, [&](op::Op& o) { o.new_cas = unique; }).code;
  }
  op::ResultCode remove(std::string_view key, uint16_t options, const Fill& fill = {}) {
    op::Op made = make(op::OpCode::kDelete, key);
    made.options = options;
    if (fill) fill(made);
    return run(made).code;
  }
  op::ResultCode invalidate(std::string_view key) { return remove(key, op::kInvalidate); }
};

}  // namespace

// --- vivify ---------------------------------------------------------------------------------------------------------

TEST_CASE("a reader who vivifies a missing item finds it empty, and wins; the next learns that he came second") {
  Meta h;
  const op::Result first = h.vivify("a", 30);
  CHECK(first.code == ResultCode::kHit);
  CHECK(first.value.empty());
  CHECK(first.total_length == 0);
  CHECK(first.client_flags == 0);
  CHECK(first.marks == (op::kWon | op::kCreated));
  CHECK(first.cas != 0);
  CHECK(h.store->counts().items == 1);
  CHECK(h.stat(StatId::kGetHits) == 1);  // as memcached counts it
  CHECK(h.stat(StatId::kGetMisses) == 0);
  const op::Result second = h.vivify("a", 60);
  CHECK(second.code == ResultCode::kHit);
  CHECK(second.marks == (op::kFetched | op::kTokenSent));  // to make it was to read it
  CHECK(second.cas == first.cas);
  CHECK(second.ttl == 30);  // there was nothing to vivify
  CHECK(h.marks("a") == op::kTokenSent);
  CHECK(h.set("a", "v") == ResultCode::kStored);
  CHECK(h.marks("a") == kNothing);
  CHECK(h.vivify("a", 30).value == "v");
}

TEST_CASE("what was vivified expires, and can be won again; 0 is for ever, as everywhere") {
  Meta h;
  h.vivify("a", 10);
  h.vivify("b", 0);
  h.pass_seconds(9);
  CHECK(h.marks("a") == op::kTokenSent);
  h.pass_seconds(1);
  CHECK(h.get("a") == "-");
  CHECK(h.vivify("a", 10).marks == (op::kWon | op::kCreated));
  CHECK(h.ttl_of("b") == -1);
}

TEST_CASE("a vivified item is one like others: add finds it, append extends it, delete removes it") {
  Meta h;
  h.vivify("a", 30);
  CHECK(h.store_as(SetMode::kAdd, "a", "x") == ResultCode::kNotStored);
  CHECK(h.store_as(SetMode::kAppend, "a", "x") == ResultCode::kStored);
  CHECK(h.get("a") == "x");
  CHECK(h.ttl_of("a") == 30);
  CHECK(h.erase("a") == ResultCode::kDeleted);
}

TEST_CASE("a vivifying reader may give the CAS") {
  Meta h;
  const auto fill = [](op::Op& o) { o.new_cas = 77; };
  CHECK(h.meta_get("a", op::kVivify | op::kExplicitCas, fill).cas == 77);
  CHECK(h.cas_of("a") == 77);
  h.set("b", "v");
  const uint64_t before = h.cas_of("b");
  CHECK(h.meta_get("b", op::kVivify | op::kExplicitCas, fill).cas == before);
}

TEST_CASE("append and prepend that vivify store a missing item whole, and extend one that is there") {
  for (const SetMode mode : {SetMode::kAppend, SetMode::kPrepend}) {
    Meta h;
    const auto fill = [&](op::Op& o) { o.mode = mode, o.vivify_exptime = 30, o.exptime = 99, o.client_flags = 5; };
    CHECK(h.meta_set("a", "one", op::kVivify, fill).code == ResultCode::kStored);
    const op::Result made = h.meta_get("a");
    CHECK(made.value == "one");
    CHECK(made.ttl == 30);
    CHECK(made.client_flags == 5);
    CHECK(made.marks == kNothing);
    h.pass_seconds(10);
    CHECK(h.meta_set("a", "two", op::kVivify, fill).code == ResultCode::kStored);
    CHECK(h.get("a") == (mode == SetMode::kAppend ? "onetwo" : "twoone"));
    CHECK(h.ttl_of("a") == 20);
    CHECK(h.meta_set("b", "x", 0, fill).code == ResultCode::kNotStored);
  }
}

// --- stale items ----------------------------------------------------------------------------------------------------

TEST_CASE("an invalidated item is still there, stale: the first reader wins, the others learn that he did") {
  Meta h;
  h.set("a", "old", 100, 7);
  const uint64_t before = h.cas_of("a");
  CHECK(h.invalidate("a") == ResultCode::kDeleted);
  CHECK(h.cas_of("a") != before);
  const op::Result first = h.meta_get("a");
  CHECK(first.value == "old");
  CHECK(first.client_flags == 7);
  CHECK(first.ttl == 100);
  CHECK(first.marks == (op::kStale | op::kWon));
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
  CHECK(h.stat(StatId::kCurrItems) == 1);
  CHECK(h.stat(StatId::kDeleteHits) == 0);  // as memcached counts it
  CHECK(h.stat(StatId::kDeleteMisses) == 0);
  CHECK(h.invalidate("none") == ResultCode::kMiss);
}

TEST_CASE("invalidated again, it can be won again") {
  Meta h;
  h.set("a", "old");
  h.invalidate("a");
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  h.invalidate("a");
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
}

TEST_CASE("any plain store makes an item fresh again, whatever its mode and length") {
  for (const SetMode mode : {SetMode::kSet, SetMode::kReplace, SetMode::kAppend, SetMode::kPrepend}) {
    for (const size_t length : {0, 3, 2000}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(length);
      Meta h;
      h.set("a", "old", 100);
      h.invalidate("a");
      h.marks("a");
      CHECK(h.store_as(mode, "a", std::string(length, 'n'), 100) == ResultCode::kStored);
      CHECK(h.marks("a") == kNothing);
      CHECK(h.recache("a", 200) == op::kWon);  // the token went, too
    }
  }
}

TEST_CASE("reading by classic commands tells and changes nothing of stale and won") {
  Meta h;
  h.set("a", "old", 100);
  h.invalidate("a");
  CHECK(h.get("a") == "old");
  h.gets("a");
  h.gat("a", 50);
  h.touch("a", 60);
  CHECK(h.ttl_of("a") == 60);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  h.touch("a", 70);
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
}

TEST_CASE("invalidating may give a new exptime, obeys a CAS and may give one") {
  Meta h;
  h.set("a", "v", 100);
  CHECK(h.remove("a", op::kInvalidate | op::kTouch, [](op::Op& o) { o.exptime = 30; }) == ResultCode::kDeleted);
  CHECK(h.ttl_of("a") == 30);
  CHECK(h.remove("a", op::kInvalidate, [](op::Op& o) { o.exptime = 99; }) == ResultCode::kDeleted);
  CHECK(h.ttl_of("a") == 30);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  const uint64_t unique = h.cas_of("a");
  const uint16_t both = op::kInvalidate | op::kCompareCas;
  CHECK(h.remove("a", both, [&](op::Op& o) { o.cas = unique + 1; }) == ResultCode::kExists);
  CHECK(h.cas_of("a") == unique);
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
  CHECK(h.remove("a", both, [&](op::Op& o) { o.cas = unique; }) == ResultCode::kDeleted);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  CHECK(h.remove("a", op::kInvalidate | op::kExplicitCas, [](op::Op& o) { o.new_cas = 5; }) == ResultCode::kDeleted);
  CHECK(h.cas_of("a") == 5);
  h.pass_seconds(30);
  CHECK(h.invalidate("a") == ResultCode::kMiss);
}

TEST_CASE("a store with the CAS of an older version may be taken as stale") {
  Meta h;
  h.set("a", "one", 100, 1);
  const uint64_t old_cas = h.cas_of("a");
  h.invalidate("a");
  CHECK(h.cas_of("a") > old_cas);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
  const op::Result stored = h.stale_set("a", "two", old_cas, 500);
  CHECK(stored.code == ResultCode::kStored);
  const op::Result now = h.peek("a");
  CHECK(now.value == "two");
  CHECK(now.client_flags == 3);
  CHECK(now.ttl == 100);  // the old item's
  CHECK(now.cas > old_cas);
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
  CHECK(h.stat(StatId::kCasHits) == 1);
}

TEST_CASE("after a stale store that no reader has won, the next reader wins") {
  Meta h;
  h.set("a", "one");
  const uint64_t old_cas = h.cas_of("a");
  h.invalidate("a");
  CHECK(h.stale_set("a", "two", old_cas).code == ResultCode::kStored);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
}

TEST_CASE("a store that may be stale is a plain one if the CAS is the item's, and refused if it is from the future") {
  Meta h;
  h.set("a", "one", 100);
  h.invalidate("a");
  h.marks("a");
  const uint64_t unique = h.cas_of("a");
  CHECK(h.stale_set("a", "no", unique + 1).code == ResultCode::kExists);
  CHECK(h.get("a") == "one");
  CHECK(h.marks("a") == (op::kStale | op::kTokenSent));
  CHECK(h.stale_set("a", "two", unique, 500).code == ResultCode::kStored);
  CHECK(h.marks("a") == kNothing);
  CHECK(h.ttl_of("a") == 500);
  CHECK(h.get("a") == "two");
  CHECK(h.stale_set("none", "x", 1).code == ResultCode::kMiss);
  CHECK(h.cas("a", "x", unique) == ResultCode::kExists);  // an older CAS alone does not do
  CHECK(h.stat(StatId::kCasBadval) == 2);
}

TEST_CASE("a stale store may give the CAS") {
  Meta h;
  h.set("a", "one");
  const uint64_t old_cas = h.cas_of("a");
  h.invalidate("a");
  const uint16_t options = op::kCompareCas | op::kInvalidate | op::kExplicitCas;
  const auto fill = [&](op::Op& o) { o.cas = old_cas, o.new_cas = 1'000'000; };
  CHECK(h.meta_set("a", "two", options, fill).code == ResultCode::kStored);
  CHECK(h.cas_of("a") == 1'000'000);
  CHECK(h.marks("a") == (op::kStale | op::kWon));
}

TEST_CASE("an ms that is refused takes what was there away, in every mode; other commands only as a plain set") {
  for (const SetMode mode : {SetMode::kSet, SetMode::kAdd, SetMode::kReplace, SetMode::kAppend, SetMode::kPrepend}) {
    Meta h;
    h.set("a", "v");
    op::Op set = h.make(op::OpCode::kSet, "a");
    set.mode = mode;
    set.options = mode == SetMode::kSet ? op::kCompareCas : 0;
    h.store->refuse_set(set, ResultCode::kTooLarge);
    CHECK(h.get("a") == "v");
    set.options |= op::kWantMeta;
    h.store->refuse_set(set, ResultCode::kTooLarge);
    CHECK(h.get("a") == "-");
  }
}

// --- recache --------------------------------------------------------------------------------------------------------

TEST_CASE("of those who find too little time left the first wins, once") {
  Meta h;
  h.set("a", "v", 30);
  CHECK(h.recache("a", 30) == kNothing);
  CHECK(h.recache("a", 31) == op::kWon);
  CHECK(h.recache("a", 31) == op::kTokenSent);
  CHECK(h.recache("a", 5) == op::kTokenSent);
  CHECK(h.marks("a") == op::kTokenSent);
  h.set("a", "v", 30);
  h.pass_seconds(20);
  // A new time to live that comes first counts.
  h.set("b", "v", 5);
  const auto first = [](op::Op& o) { o.exptime = 50, o.recache_below = 30; };
  CHECK(h.marks("b", op::kRecache | op::kTouch | op::kTouchFirst, first) == kNothing);
  h.set("c", "v");
  const auto soon = [](op::Op& o) { o.exptime = 20, o.recache_below = 30; };
  CHECK(h.marks("c", op::kRecache | op::kTouch, soon) == kNothing);
  CHECK(h.marks("c", op::kRecache | op::kTouch | op::kTouchFirst, soon) == op::kWon);
  CHECK(h.recache("a", 10) == kNothing);
  CHECK(h.recache("a", 11) == op::kWon);
  h.set("for ever", "v");
  CHECK(h.recache("for ever", 1'000'000'000) == kNothing);
  CHECK(h.meta_get("none", op::kRecache).code == ResultCode::kMiss);
}

TEST_CASE("whether there is too little time left is judged before a touch") {
  Meta h;
  h.set("a", "v", 30);
  const auto fill = [](op::Op& o) { o.recache_below = 60, o.exptime = 300; };
  const op::Result got = h.meta_get("a", op::kRecache | op::kTouch, fill);
  CHECK(got.marks == op::kWon);
  CHECK(got.ttl == 30);
  CHECK(h.ttl_of("a") == 300);
  CHECK(h.marks("a") == op::kTokenSent);  // a touch takes no token back
}

// --- delete of the value alone --------------------------------------------------------------------------------------

TEST_CASE("a delete of the value leaves an empty item without client flags, and its time") {
  for (const size_t length : {1, 100, 50'000}) {
    Meta h;
    h.set("a", std::string(length, 'v'), 100, 7);
    const uint64_t before = h.cas_of("a");
    CHECK(h.remove("a", op::kDropValue) == ResultCode::kDeleted);
    const op::Result now = h.meta_get("a");
    CHECK(now.code == ResultCode::kHit);
    CHECK(now.value.empty());
    CHECK(now.total_length == 0);
    CHECK(now.client_flags == 0);
    CHECK(now.ttl == -1);
    CHECK(now.cas == before);
    CHECK(h.store->counts().items == 1);
    CHECK(h.store_as(SetMode::kAppend, "a", "new") == ResultCode::kStored);
    CHECK(h.get("a") == "new");
  }
}

TEST_CASE("a delete of the value obeys a CAS, may give one, and may invalidate as well") {
  Meta h;
  CHECK(h.remove("a", op::kDropValue) == ResultCode::kMiss);
  h.set("a", "v");
  const uint64_t unique = h.cas_of("a");
  CHECK(h.remove("a", op::kDropValue | op::kCompareCas, [&](op::Op& o) { o.cas = unique + 1; }) == ResultCode::kExists);
  CHECK(h.get("a") == "v");
  CHECK(h.remove("a", op::kDropValue | op::kExplicitCas, [](op::Op& o) { o.new_cas = 9; }) == ResultCode::kDeleted);
  CHECK(h.cas_of("a") == 9);
  h.set("a", "v", 100);
  CHECK(h.remove("a", op::kDropValue | op::kInvalidate | op::kTouch, [](op::Op& o) { o.exptime = 40; }) ==
        ResultCode::kDeleted);
  const op::Result now = h.meta_get("a");
  CHECK(now.value.empty());
  CHECK(now.ttl == 40);
  CHECK(now.marks == (op::kStale | op::kWon));
}

// --- CAS given by the client ----------------------------------------------------------------------------------------

TEST_CASE("a CAS that the client gives is the item's until its next change") {
  Meta h;
  for (const uint64_t given : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 56, UINT64_MAX}) {
    CAPTURE(given);
    h.set("before", "v");
    const op::Result stored =
        h.meta_set("a", "1", op::kExplicitCas | op::kWantCas, [&](op::Op& o) { o.new_cas = given; });
    CHECK(stored.code == ResultCode::kStored);
    CHECK(stored.cas == given);
    CHECK(h.gets("a").cas == given);
    h.touch("a", 100);
    CHECK(h.gets("a").cas == given);
    CHECK(h.cas("a", "no", given ^ 4) == ResultCode::kExists);
    h.set("after", "v");
    const uint64_t own = h.cas_of("after");
    CHECK(own > h.cas_of("before"));
    CHECK(own < 1000);  // the store counts on as if nothing had been given
    CHECK(h.cas("a", "2", given) == ResultCode::kStored);
    CHECK(h.gets("a").cas > own);
    CHECK(h.gets("a").cas < 1000);
  }
}

TEST_CASE("the CAS may be given with every change, to items of every kind") {
  Meta h;
  h.set("n", "5");
  op::Op incr = h.make(op::OpCode::kArith, "n");
  incr.options = op::kExplicitCas | op::kWantCas;
  incr.delta = 1;
  incr.new_cas = 1 << 20;
  CHECK(h.run(incr).cas == 1 << 20);
  CHECK(h.cas_of("n") == 1 << 20);
  CHECK(h.arith("n", 1, op::kWantCas).cas < 1000);
  op::Op create = h.make(op::OpCode::kArith, "m");
  create.options = op::kExplicitCas | op::kCreate;
  create.new_cas = 1 << 21;
  CHECK(h.run(create).code == ResultCode::kNumber);
  CHECK(h.cas_of("m") == 1 << 21);
  for (const size_t length : {10, 10, 20'000, 20'000, 0}) {
    CHECK(h.set_with_cas("n", std::string(length, 'v'), length + 1) == ResultCode::kStored);
    CHECK(h.cas_of("n") == length + 1);
  }
  const auto append = [](op::Op& o) { o.mode = SetMode::kAppend, o.new_cas = 1 << 22; };
  CHECK(h.meta_set("n", "x", op::kExplicitCas, append).code == ResultCode::kStored);
  CHECK(h.cas_of("n") == 1 << 22);
}

TEST_CASE("two values with the same given CAS are two versions to a reader of chunks") {
  Meta h;
  h.set_with_cas("a", std::string(5000, 'x'), 7);
  const uint64_t version = h.gets("a").version;
  h.set_with_cas("a", std::string(5000, 'y'), 7);
  CHECK(h.gets("a").version != version);
  op::Op chunk = h.make(op::OpCode::kChunk, "a");
  chunk.version = version;
  chunk.length = 10;
  CHECK(h.run(chunk).code == ResultCode::kChanged);
}

TEST_CASE("flush_all hides what was stored before it and nothing else, whatever CAS the client gave") {
  Meta h;
  h.set_with_cas("huge", "v", UINT64_MAX);
  h.set_with_cas("small", "v", 1);
  h.flush_all();
  CHECK(h.get("huge") == "-");
  CHECK(h.get("small") == "-");
  h.pass_seconds(1);
  h.set_with_cas("small", "new", 0);
  CHECK(h.get("small") == "new");
  h.set_with_cas("huge", "new", UINT64_MAX);
  h.flush_all(5);
  CHECK(h.get("huge") == "new");
  h.pass_seconds(5);
  CHECK(h.get("huge") == "-");
  CHECK(h.get("small") == "-");
  h.set_with_cas("small", "newer", 1);
  CHECK(h.get("small") == "newer");
}

TEST_CASE("an uploaded value may be given a CAS, and be stored as stale") {
  Meta h;
  h.set("a", "one", 100);
  const uint64_t old_cas = h.cas_of("a");
  h.invalidate("a");
  auto reserved = h.store->reserve("a", 10'000);
  REQUIRE(reserved.code == ResultCode::kOk);
  REQUIRE(reserved.upload.write(0, std::string(10'000, 'v')) == ResultCode::kOk);
  op::Op commit = h.make(op::OpCode::kCommit, "a");
  commit.options = op::kCompareCas | op::kInvalidate | op::kExplicitCas;
  commit.cas = old_cas;
  commit.new_cas = 99;
  CHECK(reserved.upload.commit(commit).code == ResultCode::kStored);
  const op::Result now = h.meta_get("a");
  CHECK(now.total_length == 10'000);
  CHECK(now.cas == 99);
  CHECK(now.ttl == 100);
  CHECK(now.marks == (op::kStale | op::kWon));
}

// --- what an item says of itself ------------------------------------------------------------------------------------

TEST_CASE("ttl, last access and the fetched mark are those before this access") {
  Meta h;
  h.set("a", "v", 100);
  h.set("for ever", "v");
  CHECK(h.meta_get("for ever").ttl == -1);
  h.pass_seconds(5);
  const op::Result first = h.meta_get("a");
  CHECK(first.ttl == 95);
  CHECK(first.last_access == 5);
  CHECK((first.marks & op::kFetched) == 0);
  h.pass_seconds(2);
  const op::Result second = h.meta_get("a", op::kTouch, [](op::Op& o) { o.exptime = 50; });
  CHECK(second.ttl == 93);
  CHECK(second.last_access == 2);
  CHECK((second.marks & op::kFetched) != 0);
  h.pass_seconds(1);
  CHECK(h.meta_get("a").ttl == 49);
  h.set("a", "v");
  const op::Result anew = h.meta_get("a");
  CHECK(anew.ttl == -1);
  CHECK(anew.last_access == 0);
  CHECK((anew.marks & op::kFetched) == 0);
}

TEST_CASE("a read by any command sets the fetched mark; only a reader that asks for it gets it") {
  Meta h;
  const std::function<void()> reads[] = {[&] { h.get("a"); }, [&] { h.gat("a", 0); }, [&] { h.touch("a", 0); },
                                         [&] { h.meta_get("a", op::kNoValue); }};
  for (const auto& read : reads) {
    h.set("a", "v");
    h.pass_seconds(3);
    read();
    const op::Result now = h.meta_get("a");
    CHECK((now.marks & op::kFetched) != 0);
    CHECK(now.last_access == 0);
  }
  h.pass_seconds(3);
  const op::Result plain = h.gets("a");
  CHECK((plain.marks & op::kFetched) == 0);
  CHECK(plain.ttl == 0);
  CHECK(plain.last_access == 0);
}

TEST_CASE("a long time since the last access is reported correctly") {
  Meta h;
  h.set("a", "v");
  h.pass_seconds(400 * 86'400ULL);
  CHECK(h.meta_get("a").last_access == 400 * 86'400);
}

TEST_CASE("a peek leaves no trace") {
  Meta h;
  h.set("a", "v", 100);
  h.invalidate("a");
  h.pass_seconds(5);
  const uint64_t gets = h.stat(StatId::kCmdGet);
  for (int i = 0; i < 3; ++i) {
    const op::Result seen = h.peek("a");
    CHECK(seen.value == "v");
    CHECK(seen.ttl == 95);
    CHECK(seen.last_access == 5);
    CHECK((seen.marks & op::kFetched) == 0);
  }
  CHECK(h.peek("none").code == ResultCode::kMiss);
  CHECK(h.stat(StatId::kCmdGet) == gets);
  CHECK(h.stat(StatId::kGetHits) == 0);
  CHECK(h.stat(StatId::kGetMisses) == 0);
  const op::Result first = h.meta_get("a");
  CHECK(first.marks == (op::kStale | op::kWon));
  CHECK(first.last_access == 5);
}

TEST_CASE("a get with the item's own CAS is answered without the value") {
  Meta h;
  h.set("a", "value", 0, 7);
  const uint64_t unique = h.cas_of("a");
  const auto get = [&](uint64_t known) { return h.meta_get("a", op::kCompareCas, [&](op::Op& o) { o.cas = known; }); };
  const op::Result same = get(unique);
  CHECK(same.code == ResultCode::kHit);
  CHECK(same.value.empty());
  CHECK(same.total_length == 0);
  CHECK(same.client_flags == 7);
  CHECK(same.cas == unique);
  CHECK(get(unique + 1).value == "value");
  CHECK(get(0).value == "value");
}

// --- arith ----------------------------------------------------------------------------------------------------------

TEST_CASE("arith may touch, and tells the time left before that") {
  Meta h;
  h.set("n", "5", 100);
  op::Op incr = h.make(op::OpCode::kArith, "n");
  incr.options = op::kTouch | op::kWantMeta;
  incr.delta = 1;
  incr.exptime = 30;
  const op::Result first = h.run(incr);
  CHECK(first.number == 6);
  CHECK(first.ttl == 100);
  CHECK(h.ttl_of("n") == 30);
  incr.options = op::kWantMeta;
  CHECK(h.run(incr).ttl == 30);
}

TEST_CASE("arith that creates takes the exptime for that, and only then") {
  Meta h;
  op::Op incr = h.make(op::OpCode::kArith, "n");
  incr.options = op::kCreate | op::kWantMeta;
  incr.delta = 1;
  incr.initial = 100;
  incr.exptime = 99;
  incr.vivify_exptime = 30;
  const op::Result made = h.run(incr);
  CHECK(made.number == 100);
  CHECK(made.ttl == 30);
  h.pass_seconds(10);
  CHECK(h.run(incr).number == 101);
  CHECK(h.ttl_of("n") == 20);
  h.pass_seconds(20);
  CHECK(h.get("n") == "-");
}

TEST_CASE("a get that asks for the new ttl gets it") {
  Meta h;
  h.set("n", "5", 100);
  op::Op incr = h.make(op::OpCode::kArith, "n");
  incr.options = op::kTouch | op::kWantMeta | op::kNewTtl;
  incr.exptime = 30;
  CHECK(h.run(incr).ttl == 30);
  op::Op get = h.make(op::OpCode::kGet, "n");
  get.options = op::kTouch | op::kWantMeta | op::kNewTtl;
  get.exptime = 60;
  CHECK(h.run(get).ttl == 60);
  get.exptime = 0;
  CHECK(h.run(get).ttl == -1);
}

TEST_CASE("a read that is no access leaves last access and fetched as they were") {
  Meta h;
  h.set("a", "value", 0);
  h.pass_seconds(5);
  op::Op get = h.make(op::OpCode::kGet, "a");
  get.options = op::kWantMeta | op::kNoBump;
  for (int i = 0; i < 2; ++i) {
    const op::Result seen = h.run(get);
    CHECK(seen.value == "value");
    CHECK((seen.marks & op::kFetched) == 0);
    CHECK(seen.last_access == 5);
  }
  get.options = op::kWantMeta;
  h.run(get);
  const op::Result after = h.run(get);
  CHECK((after.marks & op::kFetched) != 0);
  CHECK(after.last_access == 0);
}

TEST_CASE("a change tells how long the value is now") {
  Meta h;
  op::Op set = h.make(op::OpCode::kSet, "a");
  set.options = op::kWantMeta;
  set.value = "12345";
  CHECK(h.run(set).number == 5);
  set.mode = op::SetMode::kAppend;
  CHECK(h.run(set).number == 10);
  const std::string large(10'000, 'v');
  set.value = large;
  CHECK(h.run(set).number == 10'010);
}

// --- batches --------------------------------------------------------------------------------------------------------

TEST_CASE("of two readers in one batch one wins") {
  Meta h;
  std::vector<op::Op> ops(4, h.make(op::OpCode::kGet, "a"));
  for (op::Op& op : ops) op.options = op::kVivify | op::kWantMeta, op.vivify_exptime = 30;
  h.store->prepare(ops);
  h.store->locate();
  size_t won = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const op::Result got = h.store->execute(i);
    CHECK(got.code == ResultCode::kHit);
    won += (got.marks & op::kWon) != 0 ? 1 : 0;
  }
  CHECK(won == 1);
  CHECK(h.store->counts().items == 1);
}

}  // namespace egret::store
