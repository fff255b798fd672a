// Walks over all items by a cursor, and the list of those evicted.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::Record;
using op::RecordSource;
using op::ResultCode;
using op::StatId;

namespace {
constexpr uint32_t kWellBehaved = 1 << 20;  // pages; no walk takes so many

op::Op asking(RecordSource source, uint64_t cursor, uint8_t size_class = op::kAnySizeClass) {
  op::Op op;
  op.code = op::OpCode::kIterate;
  op.group = static_cast<uint8_t>(source);
  op.version = cursor;
  op.size_class = size_class;
  return op;
}

struct Seen {
  op::RecordHead head;
  std::string key;
};

// One page, cut to `room` bytes as a small slot would. The cursor moves on.
std::vector<Seen> page(Harness& h, RecordSource source, uint64_t& cursor, uint8_t size_class = op::kAnySizeClass,
                       size_t room = SIZE_MAX) {
  const op::Result result = execute_one(*h.store, asking(source, cursor, size_class));
  REQUIRE(result.code == ResultCode::kOk);
  const op::RecordPage cut = op::cut_records(result.value, result.version, room);
  std::string_view left = cut.records;
  std::vector<Seen> seen;
  for (Record record; op::take_record(left, record);) seen.push_back({record.head, std::string(record.key)});
  REQUIRE(left.empty());
  if (source == RecordSource::kItems) REQUIRE(cut.cursor > cursor);
  cursor = cut.cursor;
  return seen;
}

// How often each key is told of. `between` runs after every page.
template <typename Between>
std::map<std::string, int> walk(Harness& h, Between between, uint8_t size_class = op::kAnySizeClass,
                                size_t room = SIZE_MAX) {
  std::map<std::string, int> times;
  uint64_t cursor = 0;
  for (uint32_t pages = 0; cursor != op::kWalkOver; ++pages) {
    REQUIRE(pages < kWellBehaved);
    for (const Seen& each : page(h, RecordSource::kItems, cursor, size_class, room)) ++times[each.key];
    between();
  }
  return times;
}
const auto kNothing = [] {};
}  // namespace

TEST_CASE("a walk over nothing ends, and one over a few items tells of each once") {
  Harness h(small_store());
  CHECK(walk(h, kNothing).empty());
  for (uint64_t i = 0; i < 100; ++i) h.set(key_of(i), "v");
  const auto times = walk(h, kNothing);
  CHECK(times.size() == 100);
  for (const auto& [key, count] : times) CHECK(count == 1);
}

TEST_CASE(
    "an item that stays is listed once, while others come, go and move, the index grows, and pages are cut anywhere") {
  for (const size_t room : {op::kMaxRecord, size_t{700}, size_t{4096}}) {
    Harness h(small_store(16u << 20));
    for (uint64_t i = 0; i < 3'000; ++i) h.set(key_of(i), "v");
    uint64_t fresh = 100'000;
    const auto times = walk(
        h,
        [&] {
          for (int i = 0; i < 60 && fresh < 160'000; ++i) h.set(key_of(fresh++), "new");
          if (fresh % 3 == 0) h.erase(key_of(fresh - 30));
          h.set(key_of(fresh % 3'000), "another value, elsewhere");
        },
        op::kAnySizeClass, room);
    for (uint64_t i = 0; i < 3'000; ++i) {
      const auto at = times.find(key_of(i));
      REQUIRE(at != times.end());
      CHECK(at->second == 1);
    }
  }
}

TEST_CASE("a record has all metadata of its item") {
  Harness h(small_store());
  h.set("plain", "12345");
  h.set("rich", std::string(20'000, 'v'), 1'000, 77);
  const auto start = static_cast<uint32_t>(h.clock.unix_seconds());
  h.pass_seconds(10);
  h.get("rich");
  h.pass_seconds(5);
  std::map<std::string, op::RecordHead> found;
  for (uint64_t cursor = 0; cursor != op::kWalkOver;) {
    for (const Seen& each : page(h, RecordSource::kItems, cursor)) found[each.key] = each.head;
  }
  REQUIRE(found.size() == 2);
  const op::RecordHead& plain = found["plain"];
  CHECK(plain.exptime == 0);
  CHECK(plain.last_access == start);
  CHECK(plain.seen == start + 15);
  CHECK(plain.client_flags == 0);
  CHECK(plain.value_length == 5);
  CHECK(plain.marks == 0);
  CHECK(plain.cas == h.gets("plain").cas);
  const op::RecordHead& rich = found["rich"];
  CHECK(rich.exptime == start + 1'000);
  CHECK(rich.last_access == start + 10);
  CHECK(rich.client_flags == 77);
  CHECK(rich.value_length == 20'000);
  CHECK(rich.marks == op::kFetched);
  CHECK(rich.size_class > plain.size_class);
}

TEST_CASE("expired and flushed items are not listed") {
  Harness h(small_store());
  for (uint64_t i = 0; i < 50; ++i) h.set(key_of(i), "v", i % 2 == 0 ? 10 : 0);
  h.clock.advance_seconds(20);
  h.store->begin_pass(h.clock.now_ns());
  CHECK(walk(h, kNothing).size() == 25);
  h.flush_all();
  CHECK(walk(h, kNothing).empty());
  h.set("after", "v");
  CHECK(walk(h, kNothing).size() == 1);
}

TEST_CASE("a walk of one size class tells of its items only") {
  Harness h(small_store(4u << 20));
  for (uint64_t i = 0; i < 200; ++i) h.set(key_of(i), std::string(i % 2 == 0 ? 10 : 500, 'v'));
  uint64_t cursor = 0;
  const Seen first = page(h, RecordSource::kItems, cursor).front();
  const auto times = walk(h, kNothing, first.head.size_class);
  CHECK(times.size() >= 90);
  CHECK(times.size() <= 110);
  CHECK(walk(h, kNothing, 90).empty());
}

TEST_CASE("a walk leaves no trace") {
  Harness h(small_store());
  h.set("key", "v");
  std::vector<op::StatRow> before;
  h.store->append_stats(op::StatGroup::kGeneral, before);
  h.pass_seconds(100);
  for (int i = 0; i < 5; ++i) walk(h, kNothing);
  std::vector<op::StatRow> after;
  h.store->append_stats(op::StatGroup::kGeneral, after);
  const auto steps = [](const op::StatRow& row) {
    return row.id >= static_cast<uint32_t>(StatId::kStepsUnder1us) &&
           row.id <= static_cast<uint32_t>(StatId::kStepsOver64us);
  };
  for (size_t i = 0; i < before.size(); ++i) {
    if (!steps(before[i])) CHECK(before[i].value == after[i].value);
  }
  op::Op meta = h.make(op::OpCode::kGet, "key");
  meta.options = op::kWantMeta;
  const op::Result got = h.run(meta);
  CHECK((got.marks & op::kFetched) == 0);
  CHECK(got.last_access == 100);
}

TEST_CASE("a page of a walk is a short step") {
  Harness h(small_store(64u << 20));
  for (uint64_t i = 0; i < 300'000; ++i) h.set(key_of(i), "v");
  CHECK(walk(h, kNothing).size() == h.store->counts().items);
  walk(h, kNothing, 90);
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("an unknown source is none") {
  Harness h(small_store());
  CHECK(execute_one(*h.store, asking(static_cast<RecordSource>(7), 0)).code == ResultCode::kUnsupported);
}

// --- The evicted

TEST_CASE("a watcher gets every eviction, in order; without a watcher nothing is recorded") {
  Harness h(small_store());
  uint64_t number = 0;
  const std::string value(1'000, 'v');
  while (h.stat(StatId::kEvictions) == 0) h.set(key_of(number++), value);  // unseen: nobody has asked yet
  uint64_t cursor = 0;
  CHECK(page(h, RecordSource::kEvicted, cursor).empty());
  CHECK(cursor != 0);
  const uint64_t before = h.stat(StatId::kEvictions);
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    h.set(key_of(number++), value, 500);
    for (const Seen& each : page(h, RecordSource::kEvicted, cursor)) {
      keys.push_back(each.key);
      CHECK(each.head.value_length == 1'000);
      CHECK(each.head.seen == h.clock.unix_seconds());
      CHECK(h.get(each.key) == "-");
    }
  }
  REQUIRE(keys.size() == h.stat(StatId::kEvictions) - before);
  CHECK(keys.size() > 100);
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}

TEST_CASE("a slow reader gets the number of lost records; one that comes back too late starts again") {
  Harness h(small_store(kMinMemory, 1 << 10));
  uint64_t cursor = 0;
  page(h, RecordSource::kEvicted, cursor);
  const uint64_t before = h.stat(StatId::kEvictions);
  for (uint64_t i = 0; h.stat(StatId::kEvictions) - before < 3 * Evictions::kEntries; ++i)
    h.set(key_of(i), std::string(200, 'v'));
  const op::Result late = execute_one(*h.store, asking(RecordSource::kEvicted, cursor));
  const uint64_t evicted = h.stat(StatId::kEvictions) - before;  // by the last set's debt, too, which that op paid
  CHECK(late.number == evicted - Evictions::kEntries);
  cursor += late.number;
  uint64_t seen = 0;
  for (size_t n = 1; n > 0; seen += n) n = page(h, RecordSource::kEvicted, cursor, op::kAnySizeClass, 1'000).size();
  CHECK(seen == Evictions::kEntries);
  // The watch is over: what goes now is not noted, and not lost either, since nobody was promised it.
  h.pass_seconds(op::kWatchSeconds);
  const uint64_t then = h.stat(StatId::kEvictions);
  for (uint64_t i = 0; h.stat(StatId::kEvictions) == then; ++i) h.set(key_of(1'000'000 + i), std::string(200, 'v'));
  const op::Result again = execute_one(*h.store, asking(RecordSource::kEvicted, cursor));
  CHECK(again.value.empty());
  CHECK(again.number == 0);
  // A cursor of another life is as good as none.
  CHECK(execute_one(*h.store, asking(RecordSource::kEvicted, cursor + 1'000'000)).version == again.version);
}

}  // namespace egret::store
