// Any sequence of what peers ask of a partition about owners that it stands in for: entering, reading from any cursor,
// saying up to where an owner is purged, and the listing of all owners. Whatever they say, what is remembered stays
// bounded, pages are whole records, and a listing names each owner once.
//
//   input: steps, each a byte that chooses, a byte that says whose, and a byte for a key or up to 8 for a cursor
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "changes/changed_keys.h"
#include "input.h"
#include "op/hash.h"
#include "op/records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

using namespace egret;
using backend::ChangedKeys;

namespace {

constexpr uint64_t kMemory = 1u << 20;
constexpr uint64_t kBudget = 256u << 10;
constexpr size_t kPage = 4096;

class Play {
 public:
  Play(const uint8_t* data, size_t size) : steps_(data, size) {}

  void run() {
    while (!steps_.at_end()) {
      step();
      EGRET_CHECK(changed_.owners() <= ChangedKeys::kMostOwners);
      EGRET_CHECK(changed_.bytes() <= kBudget);
    }
    check_listing(0);
  }

 private:
  void step() {
    const uint8_t what = steps_.take<uint8_t>();
    const uint64_t tag = 1 + steps_.take<uint8_t>() % 80;
    switch (what % 8) {
      case 0:
      case 1:
      case 2:
        return note(tag);
      case 3:
        changed_.floor_of(tag, 1);
        return changed_.note_all(tag);
      case 4:
        return read(tag, cursor(what));
      case 5:
        return changed_.note_purged(tag, cursor(what));
      case 6:
        now_ns_ += uint64_t{steps_.take<uint8_t>()} * 100'000'000;
        return check_listing(0);
      default:
        return check_listing(what < 128 ? what / 8 : steps_.take<uint64_t>());
    }
  }
  // As the executor: floor_of() comes first. Some keys are followed by many others.
  void note(uint64_t tag) {
    const uint8_t chosen = steps_.take<uint8_t>();
    const size_t count = chosen >= 250 ? 500 : 1;
    for (size_t i = 0; i < count; ++i) {
      const std::string key = std::string(1 + chosen % 40, 'k') + std::to_string(chosen + i);
      changed_.floor_of(tag, 1);
      changed_.note(tag, key, op::hash_key(key, 3));
    }
  }
  // One that was told, one near it, one of those with a meaning, or any.
  uint64_t cursor(uint8_t what) {
    constexpr uint64_t kWithMeaning[] = {op::kEnterFailover, op::kOldestChange, op::kChangesFromNow,
                                         op::kChangesFromNow - 1};
    if (what < 64) return told_;
    if (what < 128) return told_ + steps_.take<uint8_t>() - 128;
    return what < 192 ? kWithMeaning[what % 4] : steps_.take<uint64_t>();
  }
  void read(uint64_t tag, uint64_t from) {
    std::string records;
    const ChangedKeys::Page page = changed_.read(tag, from, 1, kPage, records);
    EGRET_CHECK(records.size() <= kPage + op::kMaxRecord);
    std::string_view left = records;
    op::Record record;
    uint64_t last = 0;
    while (op::take_record(left, record)) {
      EGRET_CHECK(record.head.cursor > last && record.head.cursor <= page.cursor);
      last = record.head.cursor;
    }
    EGRET_CHECK(left.empty());
    EGRET_CHECK(records.empty() || last == page.cursor || page.is_incomplete);
    told_ = page.cursor;
  }
  void check_listing(uint64_t from) {
    std::string bytes;
    EGRET_CHECK(changed_.list(from, now_ns_, bytes) == changed_.owners());
    std::string_view left = bytes;
    op::Record record;
    std::set<uint64_t> tags;
    for (uint64_t at = from; op::take_record(left, record); ++at) {
      op::ChangedOwner owner{};
      EGRET_CHECK(record.key.size() == sizeof owner && record.head.cursor == at + 1);
      std::memcpy(&owner, record.key.data(), sizeof owner);
      EGRET_CHECK(owner.tag != 0 && tags.insert(owner.tag).second);
      told_ = owner.purged;
    }
    EGRET_CHECK(left.empty());
    EGRET_CHECK(tags.size() == (from < changed_.owners() ? changed_.owners() - from : 0));
    // To list changes nothing: whoever lists again at the same time is told the same.
    std::string again;
    changed_.list(from, now_ns_, again);
    EGRET_CHECK(again == bytes);
  }

  fuzz::Input steps_;
  ChangedKeys changed_{kMemory};
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t told_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Play(data, size).run();
  return 0;
}
