// Which keys were changed here in the place of owners that could not be reached: of each owner, by its tag, the keys in
// the order of their changes, for those who purge them on the owner before it is used again; and since when its items
// are seen.
//
//   op with a tag ─ floor_of ─▶ an item older than that is removed ─ executed, may_change? ─▶ note(key)
//   a proxy ─ read(kEnterFailover) ─▶ the floor is now, a cursor … read(cursor) ─▶ keys, or: any key may be one
//
// A cursor is a position in the owner's log, which begins at a random number, so that one of an earlier process, or of
// an owner that was forgotten, is known as such. Bounded by kMostOwners, kMostLog and the budget: beyond them, keys and
// owners are forgotten, and who asks for them is told that any key may have changed.
//
// Thread: the partition's. Memory: outside the store's; none until the first tag comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace egret::backend {

class ChangedKeys {
 public:
  // `memory`: of the partition; all logs together take 1/64 of it at most, 256 KiB to 8 MiB.
  explicit ChangedKeys(uint64_t memory);
  ~ChangedKeys();

  // Items of this owner with a smaller version are from before it was entered. An owner that is not known is entered,
  // at `version`, the one that the next change gets.
  uint64_t floor_of(uint64_t owner, uint64_t version);
  // An op for this owner, which floor_of() knows, has changed the key.
  void note(uint64_t owner, std::string_view key, uint64_t hash);
  // ... every key.
  void note_all(uint64_t owner);

  struct Page {
    uint64_t cursor = 0;
    bool is_incomplete = false;  // more keys may have changed than are known
  };
  // Appends records (op/records.h) from `cursor` on to `to`, until they exceed `bytes`. `version` as for floor_of().
  Page read(uint64_t owner, uint64_t cursor, uint64_t version, size_t bytes, std::string& to);

  // --- for those who did not lose the owner, and purge it all the same, one of them for all
  // Appends a record for each owner from number `cursor` on (op::ChangedOwner); returns the number of owners. What is
  // changed after a listing is listed as changed after kRoundNs at the earliest, so that keys which are changed all the
  // time are read, and so noted again, no more often than that, however many look.
  uint64_t list(uint64_t cursor, uint64_t now_ns, std::string& to);
  // All changes of the owner before that cursor have been purged on it.
  void note_purged(uint64_t owner, uint64_t cursor);

  uint64_t bytes() const { return bytes_; }
  uint64_t owners() const { return owners_.size(); }
  // How often keys of an owner, or an owner with its keys, were forgotten for want of room.
  uint64_t forgotten() const { return forgotten_; }

  static constexpr uint64_t kRoundNs = 5'000'000'000;
  static constexpr size_t kMostOwners = 64;
  static constexpr uint64_t kMostLog = 1u << 20;  // bytes, of one owner

 private:
  struct Owner;
  Owner* find(uint64_t tag);
  Owner& find_or_enter(uint64_t tag, uint64_t version);
  void make_room(Owner& for_whom, uint64_t bytes);
  void forget_log(Owner& owner, uint64_t gap);

  const uint64_t budget_;
  std::vector<std::unique_ptr<Owner>> owners_;  // the one used last at the end
  uint64_t bytes_ = 0;
  uint64_t forgotten_ = 0;
};

}  // namespace egret::backend
