// What is remembered of keys that were changed in the place of an absent owner: all of them, or that not all are known.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "changes/changed_keys.h"
#include "op/hash.h"
#include "op/records.h"

using egret::backend::ChangedKeys;
namespace op = egret::op;

namespace {

constexpr uint64_t kMemory = 64u << 20;
constexpr uint64_t kTag = 77;

void note(ChangedKeys& changed, const std::string& key, uint64_t tag = kTag) {
  changed.floor_of(tag, 1);
  changed.note(tag, key, op::hash_key(key, 5));
}

struct Told {
  std::vector<std::string> keys;
  uint64_t cursor = 0;
  bool is_incomplete = false;
};

// All pages from that cursor on.
Told read(ChangedKeys& changed, uint64_t cursor, uint64_t tag = kTag, size_t bytes = 500) {
  Told told;
  for (told.cursor = cursor;;) {
    std::string records;
    const ChangedKeys::Page page = changed.read(tag, told.cursor, 1, bytes, records);
    told.is_incomplete |= page.is_incomplete;
    told.cursor = page.cursor;
    std::string_view left = records;
    op::Record record;
    while (op::take_record(left, record)) {
      told.keys.emplace_back(record.key);
      CHECK(record.head.cursor <= page.cursor);
    }
    if (records.empty()) return told;
  }
}

uint64_t enter(ChangedKeys& changed, uint64_t version = 1, uint64_t tag = kTag) {
  std::string none;
  return changed.read(tag, op::kEnterFailover, version, 500, none).cursor;
}

using Keys = std::vector<std::string>;

// What is listed of the owner.
op::ChangedOwner listed(ChangedKeys& changed, uint64_t now_ns) {
  std::string bytes;
  REQUIRE(changed.list(0, now_ns, bytes) == 1);
  std::string_view records = bytes;
  op::Record record;
  REQUIRE(op::take_record(records, record));
  CHECK(record.head.cursor == 1);
  op::ChangedOwner owner{};
  REQUIRE(record.key.size() == sizeof owner);
  std::memcpy(&owner, record.key.data(), sizeof owner);
  return owner;
}

// All pages of a listing, each cut behind so many records, as a slot may cut it.
std::vector<op::ChangedOwner> list_all(ChangedKeys& changed, uint64_t now_ns, size_t most) {
  std::vector<op::ChangedOwner> owners;
  for (uint64_t cursor = 0;;) {
    std::string bytes;
    CHECK(changed.list(cursor, now_ns, bytes) == changed.owners());
    if (bytes.empty()) return owners;
    std::string_view records = bytes;
    op::Record record;
    for (size_t i = 0; i < most && op::take_record(records, record); ++i) {
      REQUIRE(record.key.size() == sizeof(op::ChangedOwner));
      std::memcpy(&owners.emplace_back(), record.key.data(), sizeof(op::ChangedOwner));
      cursor = record.head.cursor;
    }
  }
}

}  // namespace

TEST_CASE("what is changed after a listing is listed a round later") {
  ChangedKeys changed(kMemory);
  constexpr uint64_t kNow = 100'000'000'000;
  const uint64_t from = enter(changed);
  note(changed, "a");
  const op::ChangedOwner first = listed(changed, kNow);
  CHECK(first.tag == kTag);
  CHECK(first.purged == from);
  const Told told = read(changed, first.purged);
  CHECK(told.keys == Keys{"a"});
  CHECK(told.cursor == first.end);
  note(changed, "b");
  CHECK(listed(changed, kNow + ChangedKeys::kRoundNs - 1).end == first.end);
  CHECK(listed(changed, kNow + ChangedKeys::kRoundNs).end > first.end);
}

TEST_CASE("how far an owner is purged only grows, and never beyond its changes") {
  ChangedKeys changed(kMemory);
  enter(changed);
  note(changed, "a");
  const uint64_t middle = read(changed, op::kOldestChange).cursor;
  note(changed, "b");
  const uint64_t end = read(changed, op::kOldestChange).cursor;
  changed.note_purged(kTag, end);
  changed.note_purged(kTag, middle);
  changed.note_purged(kTag, end + 1);
  changed.note_purged(kTag + 1, end);
  CHECK(listed(changed, 1).purged == end);
}

TEST_CASE("keys come in the order of their changes, once between two readings") {
  ChangedKeys changed(kMemory);
  const uint64_t first = enter(changed);
  note(changed, "a");
  note(changed, "b");
  note(changed, "a");
  const Told told = read(changed, first);
  CHECK((told.keys == Keys{"a", "b"}));
  CHECK_FALSE(told.is_incomplete);
  CHECK(read(changed, told.cursor).keys.empty());
  note(changed, "a");
  note(changed, "c");
  note(changed, "a");
  CHECK((read(changed, told.cursor).keys == Keys{"a", "c"}));
  const Told again = read(changed, first);
  CHECK_MESSAGE((again.keys == Keys{"a", "b", "a", "c"}), "another reader, who has read nothing yet");
  CHECK_FALSE(again.is_incomplete);
}

TEST_CASE("the floor is where the owner was entered last; an owner that is not known is entered") {
  ChangedKeys changed(kMemory);
  CHECK(changed.owners() == 0);
  CHECK(changed.floor_of(kTag, 10) == 10);
  CHECK(changed.floor_of(kTag, 20) == 10);
  enter(changed, 30);
  CHECK(changed.floor_of(kTag, 40) == 30);
  CHECK(changed.floor_of(kTag + 1, 50) == 50);
  CHECK(changed.owners() == 2);
}

TEST_CASE("who enters again does not take the others' changes away") {
  ChangedKeys changed(kMemory);
  const uint64_t first = enter(changed);
  note(changed, "a");
  const uint64_t second = enter(changed);
  note(changed, "a");
  CHECK((read(changed, second).keys == Keys{"a"}));
  CHECK((read(changed, first).keys == Keys{"a", "a"}));
}

TEST_CASE("from the oldest, and from now on") {
  ChangedKeys changed(kMemory);
  CHECK(read(changed, op::kOldestChange).cursor == op::kOldestChange);
  CHECK_FALSE(read(changed, op::kChangesFromNow).is_incomplete);
  CHECK_MESSAGE(changed.owners() == 0, "asking makes no owner");
  note(changed, "a");
  const Told told = read(changed, op::kOldestChange);
  CHECK((told.keys == Keys{"a"}));
  CHECK_FALSE(told.is_incomplete);
  note(changed, "b");
  const Told now = read(changed, op::kChangesFromNow);
  CHECK(now.keys.empty());
  note(changed, "c");
  CHECK((read(changed, now.cursor).keys == Keys{"c"}));
}

TEST_CASE("a cursor of another process, of a forgotten owner, or of nobody is known as such") {
  ChangedKeys before(kMemory);
  const uint64_t old = enter(before);
  ChangedKeys changed(kMemory);
  CHECK_MESSAGE(read(changed, old).is_incomplete, "an owner that is not known");
  const uint64_t first = enter(changed);
  CHECK(read(changed, old).is_incomplete);
  CHECK(read(changed, first + 1).is_incomplete);
  CHECK(read(changed, first - 1).is_incomplete);
  note(changed, "abcdefgh");
  CHECK_FALSE(read(changed, first).is_incomplete);
  for (uint64_t at = first + 1; at < read(changed, first).cursor; ++at) read(changed, at);
}

TEST_CASE("after a flush any key may be one, for everybody") {
  ChangedKeys changed(kMemory);
  const uint64_t first = enter(changed);
  note(changed, "a");
  const uint64_t second = read(changed, first).cursor;
  changed.note_all(kTag);
  note(changed, "b");
  CHECK(read(changed, first).is_incomplete);
  CHECK(read(changed, second).is_incomplete);
  const Told oldest = read(changed, op::kOldestChange);
  CHECK(oldest.is_incomplete);
  CHECK((oldest.keys == Keys{"b"}));
  CHECK_FALSE(read(changed, oldest.cursor).is_incomplete);
}

TEST_CASE("memory is bounded, and what is forgotten is not passed over in silence") {
  ChangedKeys changed(kMemory);
  const uint64_t first = enter(changed);
  for (int i = 0; i < 100'000; ++i) note(changed, "a key of some thirty bytes, " + std::to_string(i));
  CHECK(changed.bytes() <= 2 * ChangedKeys::kMostLog);
  CHECK(changed.forgotten() > 0);
  CHECK(read(changed, first).is_incomplete);
  for (uint64_t tag = 1; tag <= 40; ++tag) {
    for (int i = 0; i < 5'000; ++i) note(changed, "a key of some thirty bytes, " + std::to_string(i), tag);
  }
  CHECK(changed.bytes() <= 1u << 20);
  for (uint64_t tag = 1'000; tag < 1'100; ++tag) enter(changed, 1, tag);
  CHECK(changed.owners() == ChangedKeys::kMostOwners);
  CHECK(read(changed, first).is_incomplete);
}

TEST_CASE("keys of the greatest length, and of any bytes") {
  ChangedKeys changed(kMemory);
  const uint64_t first = enter(changed);
  Keys keys{std::string(250, 'k'), std::string("\0\xff\n", 3), std::string(1, '\0')};
  for (const std::string& key : keys) note(changed, key);
  CHECK(read(changed, first).keys == keys);
}

// The model: by owner, the keys of which it has an old value, as they were changed here and not deleted there since. Some
// proxies that did not lose the owners look: each lists, reads one owner's changes from where it was purged, deletes those
// keys on it some time later, and says so.
TEST_CASE("whatever happens, an owner with old values is listed, and all of them are found from where it was purged") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ChangedKeys changed(seed % 3 == 0 ? 1u << 20 : kMemory);
    const uint64_t tags = seed % 2 == 0 ? 5 : ChangedKeys::kMostOwners;
    const size_t names = 10 + random() % 2'000;
    uint64_t now_ns = 1'000'000'000'000;
    std::map<uint64_t, std::set<std::string>> old;
    std::vector<std::pair<uint64_t, Told>> looks;  // that have read, and not deleted yet
    size_t purged = 0, flushed = 0;
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t tag = 1 + random() % tags;
      const uint64_t what = random() % 400;
      if (what < 385) {
        const std::string key = std::string(random() % 3 * 40, 'x') + std::to_string(random() % names);
        note(changed, key, tag);
        old[tag].insert(key);
      } else if (what < 387) {
        enter(changed, 1, tag);
      } else if (what < 388) {
        changed.floor_of(tag, 1);
        changed.note_all(tag);
        old[tag].insert("a key that nobody has named");
      } else if (what < 390) {
        now_ns += random() % (2 * ChangedKeys::kRoundNs);
      } else if (what < 395) {
        for (const op::ChangedOwner& owner : list_all(changed, now_ns, 1 + random() % 8)) {
          if (owner.purged < owner.end && random() % 4 == 0)
            looks.emplace_back(owner.tag, read(changed, owner.purged, owner.tag, 1 + random() % 3'000));
        }
      } else if (!looks.empty()) {
        const size_t which = random() % looks.size();
        const auto [owner, told] = looks[which];
        looks.erase(looks.begin() + static_cast<ptrdiff_t>(which));
        if (told.is_incomplete) {
          old[owner].clear();
        } else {
          for (const std::string& key : told.keys) old[owner].erase(key);
        }
        changed.note_purged(owner, told.cursor);
        ++(told.is_incomplete ? flushed : purged);
      }
      if (step % 1'000 != 999) continue;
      now_ns += ChangedKeys::kRoundNs;
      std::set<uint64_t> seen;
      for (const op::ChangedOwner& owner : list_all(changed, now_ns, 1 + random() % 8)) {
        REQUIRE(seen.insert(owner.tag).second);
        const Told told = read(changed, owner.purged, owner.tag);
        REQUIRE((old[owner.tag].empty() || owner.purged < owner.end));
        if (told.is_incomplete) continue;
        const std::set<std::string> keys(told.keys.begin(), told.keys.end());
        REQUIRE(std::ranges::includes(keys, old[owner.tag]));
      }
      REQUIRE(seen.size() == changed.owners());
      for (const auto& [owner, keys] : old) REQUIRE((keys.empty() || seen.contains(owner)));
    }
    CHECK(purged + flushed > 20);
  }
}

// The model: the set of keys changed since each reader's cursor.
TEST_CASE(
    "whatever happens, a reader is told of each key that was changed since its cursor, or that not all are known") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ChangedKeys changed(seed % 3 == 0 ? 1u << 20 : kMemory);
    struct Reader {
      uint64_t tag;
      uint64_t cursor;
      std::set<std::string> owed;
    };
    const uint64_t tags = seed % 2 == 0 ? 3 : 80;
    const size_t names = 10 + random() % 3'000;
    std::vector<Reader> readers;
    size_t complete = 0;
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t tag = 1 + random() % tags;
      const uint64_t what = random() % 200;
      if (what < 190) {
        const std::string key = std::string(random() % 3 * 40, 'x') + std::to_string(random() % names);
        note(changed, key, tag);
        for (Reader& reader : readers) {
          if (reader.tag == tag) reader.owed.insert(key);
        }
      } else if (what < 193 && readers.size() < 20) {
        readers.push_back({tag, enter(changed, 1, tag), {}});
      } else if (!readers.empty()) {
        Reader& reader = readers[random() % readers.size()];
        const Told told = read(changed, reader.cursor, reader.tag, 1 + random() % 3'000);
        if (!told.is_incomplete) {
          const std::set<std::string> keys(told.keys.begin(), told.keys.end());
          for (const std::string& key : reader.owed) REQUIRE(keys.contains(key));
          ++complete;
        }
        reader.cursor = told.cursor;
        reader.owed.clear();
        if (told.cursor == op::kOldestChange) reader.cursor = enter(changed, 1, reader.tag);
      }
    }
    CHECK(complete > 0);
  }
}
