// The store of one partition: keys to values within an exact memory limit, with memcached's semantics.
//
//   Op ─ prepare (prefetch buckets) ─▶ locate (match tags, prefetch items) ─▶ execute, in order ─▶ Result
//                                                                              │
//   Store      the ops: get.cc set.cc arith.cc flush.cc upload.cc pins.cc ◀────┘   check.cc   warm.cc: restarts
//     ├ Reclaimer    eviction and compaction        ├ Walker        walks for `lru_crawler metadump`, `watch evictions`
//     ├ Sweeper      removes what is expired        └ MemoryLimit   a limit that changes while the store serves
//     └ Items        the items, as all of these share them
//         ├ Index    key hash → record              ├ Pages   one arena of 64 KiB pages
//         └ Log      records in pages, two queues   └ Pieces  (value.h) large values in pages and chunks
//
// It knows neither slots nor memcached text. Thread: the partition's, for everything; create() may run on another.
// Memory: one arena holds everything, so the limit is exact. The data path neither locks nor allocates from the heap, but
// for the lists of large values that are being stored. Each call does a bounded amount of work (work.h). Errors: results
// say what happened (op::ResultCode); only create() fails otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "op/op.h"
#include "op/stats.h"
#include "store/arena.h"
#include "store/config.h"
#include "store/evictions.h"
#include "store/ghosts.h"
#include "store/items.h"
#include "store/layout.h"
#include "store/memory_limit.h"
#include "store/reclaimer.h"
#include "store/sweeper.h"
#include "store/walker.h"

namespace egret::store {

inline constexpr size_t kMaxBatch = 32;

// The hash seed of the store in that file, if a clean stop has left one; else why not. create() takes up the file only
// under the same seed.
base::Expected<uint64_t> kept_hash_seed(const std::string& path);

class Store {
 public:
  class Pin;
  class Upload;
  struct Reservation;

  static base::Expected<std::unique_ptr<Store>> create(const StoreConfig& config);
  // Saves itself if it has a file. Uploads and pins must have ended.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // One pass of the poll loop: reads the clock once (expiry is `<=` this second everywhere), fires an overdue delayed
  // flush, and does a step of upkeep. Call it before the first op after every pause.
  void begin_pass();
  // The same for a caller who has read the clock already (base::Clock::now_ns): costs nothing, but may be late by
  // kSecondLag.
  void begin_pass(uint64_t now_ns) {
    if (now_ns - clock_read_ns_ < kSecondLag) return;
    clock_read_ns_ = now_ns;
    begin_pass();
  }
  static constexpr uint64_t kSecondLag = 5'000'000;  // ns
  // A bounded step of what waits for idle moments (pages to be freed, items to be swept). False: nothing does at
  // present.
  bool idle_step();
  // Seconds until idle_step() has something to do again, if nothing else happens; kNever: it will not.
  uint32_t upkeep_in_seconds() const;
  // For tests of expiry: from now on it is so many seconds later than the clock says. False: later than can be stored.
  bool move_clock(uint64_t seconds);
  static constexpr uint32_t kNever = Sweeper::kNever;

  // Ops that will be a batch soon: worth calling while another one is still to be executed. Each with its hash filled
  // in.
  void foresee(std::span<const op::Op> ops) const {
    for (const op::Op& op : ops) items_.index.prefetch(op.hash);
  }
  // A batch: at most kMaxBatch ops, each with its hash filled in. The span must stay valid until the last execute().
  void prepare(std::span<const op::Op> ops);
  void locate();
  // Executes ops[index] of the prepared batch: Get, Set, Delete, Arith, Chunk, Flush; others answer kUnsupported.
  // Strictly in order, once each (ops that somebody else executes may be left out). Its value and further pieces
  // view the store's memory until the next call of anything that is not const. Of a large value a get gives the first
  // kMaxChunk bytes; a chunk gives what was asked for, up to kMaxChunk.
  op::Result execute(size_t index);
  // prepare, locate and execute of a single op.
  op::Result execute_one(const op::Op& op);
  static constexpr uint32_t kMaxChunk = 64u << 10;

  // --- Values in parts. An Upload is room for a value that nobody sees until commit().
  // All uploads together hold at most max(1/8 of the memory limit, one item of item_size_max).
  // kOk: the upload is open. kTooLarge, kOutOfMemory: it is not; call refuse_set() when the client's Commit comes (or
  // at once, if the op says how it was meant), since a failed plain set also removes the old item.
  Reservation reserve(std::string_view key, uint32_t total_length);
  // Judges the op now, as a kSet of the uploaded value: mode, CAS, flags and exptime come from `commit`. Its key must
  // be the one that was reserved. Always consumes the upload. kNoUpload: parts are missing.
  op::Result commit(Upload&& upload, const op::Op& commit);
  // What becomes of a set whose value could not be taken: counts it, and removes the old item if it is a plain set.
  op::Result refuse_set(const op::Op& set, op::ResultCode why);

  // Keeps the item's present value readable, whatever happens to the key, until the Pin ends. Empty if there is no such
  // item, or if all pins together would hold more than max(1/8 of the memory limit, one item of item_size_max).
  Pin pin(std::string_view key, uint64_t hash);

  // A page of records: what a kIterate op asks for. Result.value views the store's memory until the next call of it.
  op::Result iterate(const op::Op& op);

  // --- Statistics
  // Appends the rows of that group: of kGeneral one for every counter that the store keeps, in the order of StatId.
  // kReset: as `stats` shows the counters; kStart: as if they had never been reset.
  enum class Since : uint8_t { kReset, kStart };
  void append_stats(op::StatGroup group, std::vector<op::StatRow>& rows, Since since = Since::kReset) const;
  void reset_stats();
  uint64_t item_count() const { return items_.counters[op::StatId::kCurrItems]; }
  const Arena& arena() const { return arena_; }
  // Why what was in the file was not taken up; empty if it was, or without a file.
  const std::string& empty_because() const { return empty_because_; }

  // --- Memory, in bytes
  struct Memory {
    uint64_t used;         // in whole pages; never more than `limit`, unless that has just been lowered
    uint64_t limit;        // the present one
    uint64_t least_limit;  // what set_memory_limit() can set
    uint64_t most_limit;
  };
  Memory memory() const;
  // Takes effect in steps, of begin_pass() and idle_step(); memory().limit is the new one at once. kOutOfMemory: it is
  // not within memory().least_limit .. most_limit.
  op::ResultCode set_memory_limit(uint64_t bytes);

  // The work, in nanoseconds as work.h counts them, of all steps so far that took more than 1 us.
  uint64_t long_work_ns() const { return items_.long_work_ns; }

  // The checker (check.cc): every item is reachable and filed under its own hash and tag, records tile their pages,
  // what large values hold is what is taken, accounting is exact, used <= limit. Reads everything. Says why not.
  bool check_invariants(std::string* why);

 private:
  // What a record is to be made of. The value is `first` and `second` one after the other, or, if there are any, what
  // `pieces` hold.
  struct Draft {
    std::string_view key;
    uint32_t deadline = 0;
    uint32_t client_flags = 0;
    std::optional<uint64_t> given_cas = std::nullopt;
    Bits marks = 0;  // of ItemBits
    std::string_view first = {};
    std::string_view second = {};
    Pieces* pieces = nullptr;

    bool is_large() const { return pieces != nullptr && pieces->length() > kMaxInline; }
    Bits layout() const;
    uint64_t inline_length() const;
    uint32_t units() const { return Item::units_for(key.size(), layout(), inline_length()); }
  };
  Store(const StoreConfig& config, Arena arena, const Layout& layout, const Superblock* kept);

  // store.cc
  void prefetch_value(size_t index) const;
  // The live item of a key. One that is expired or flushed is removed and counted. `guess`: where it may be.
  Slot find(std::string_view key, uint64_t hash, Slot guess) {
    const bool is_right = guess && items_.item(guess).has_key(key);
    const Slot slot = is_right ? guess : items_.index.find(key, hash);
    if (!slot || items_.is_live(items_.item(slot))) return slot;
    remove_unseen(slot, hash);
    return Slot{};
  }
  void remove_unseen(Slot slot, uint64_t hash);
  // The live item of a key; nothing changes and nothing is counted.
  Slot peek(std::string_view key, uint64_t hash) const;
  // What `exptime` means now, in seconds since the epoch; 0: never.
  uint32_t deadline_of(int64_t exptime) const;
  op::Result dispatch(const op::Op& op, Slot guess);
  op::Result perform(const op::Op& op, Slot guess);
  uint64_t large_budget() const;
  void set_expires(Slot slot, bool expires);

  // get.cc
  static bool is_plain_get(const op::Op& op) {
    return op.code == op::OpCode::kGet && (op.options & ~(op::kWantCas | op::kPin)) == 0;
  }
  op::Result plain_get(const op::Op& op, Slot guess);
  op::Result get(const op::Op& op, Slot guess);
  op::Result peek(const op::Op& op);
  op::Result vivify(const op::Op& op);
  op::Result chunk(const op::Op& op);
  op::Result chunk_of(const Item& item, uint32_t offset, uint32_t length);
  op::Result erase(const op::Op& op, Slot guess);
  op::Result invalidate(const op::Op& op, Slot slot);
  op::Result drop_value(const op::Op& op, Slot slot);
  op::Result hit(const Item& item, bool with_cas) const;
  void describe(const Item& item, bool with_cas, op::Result& result) const;
  void add_meta(const op::Op& op, const Item& item, op::Result& result) const;
  int64_t ttl_of(const Item& item) const;
  void before_access(const op::Op& op, Item& item, op::Result& result) const;
  void give(const Item& item, uint32_t offset, uint32_t length, op::Result& result);
  void give_beginning(const Item& item, op::Result& result);
  bool touch(Slot& slot, const op::Op& op);

  // set.cc
  op::Result set(const op::Op& op, Slot guess, Upload* upload);
  op::Result judge_and_store(const op::Op& op, Slot guess, Upload* upload);
  op::Result replace_value(const op::Op& op, Slot old, Upload* upload, Bits marks);
  op::Result extend_value(const op::Op& op, Slot old, Upload* upload);
  op::Result extend_large(const op::Op& op, Slot old, Upload* upload);
  op::Result stored(ItemRef ref);
  op::Result no_room();
  void disown(ItemRef ref);
  bool is_too_large(std::string_view key, uint32_t client_flags, uint64_t value_length) const;
  bool overwrite(const Draft& draft, Slot old);
  // Makes a record of the draft and files it under its key, in the place of the item that is there. None: no room.
  ItemRef place(const Draft& draft, uint64_t hash);
  void write(const Draft& draft, ItemRef ref);
  // Gives the item room for that field (0 so far), even if it has to move. None: there is no room.
  Slot relay(Slot slot, uint64_t hash, Bits field);

  // arith.cc
  op::Result arith(const op::Op& op, Slot guess);
  op::Result create_number(const op::Op& op);
  bool write_number(const op::Op& op, Slot slot, uint64_t number);
  op::Result number_result(uint64_t number, const Item& item) const;

  // flush.cc
  op::Result flush(const op::Op& op);
  void fire_flush();

  // pins.cc
  void end_pin(ItemRef ref);

  // stats.cc
  void append_class_stats(std::vector<op::StatRow>& rows) const;

  // check.cc
  bool check_records(std::string* why);
  bool check_large(std::string* why);

  // warm.cc
  // What a file holds that can be taken up. Null: start empty; the file is in use from then on.
  static const Superblock* open_file(const StoreConfig& config, const Arena& arena, const Layout& layout,
                                     std::string* why_empty);
  void restore(const Superblock& kept);
  void mark_in_use();
  void save();

  const StoreConfig config_;
  const Layout layout_;
  base::OwnerThread owner_;
  Arena arena_;
  Items items_;
  Ghosts ghosts_;
  Evictions evictions_;
  Reclaimer reclaimer_;
  Sweeper sweeper_;
  MemoryLimit limit_;
  Walker walker_;

  uint64_t moved_ = 0;          // seconds, by move_clock()
  uint64_t clock_read_ns_ = 0;  // when begin_pass(now_ns) last read the clock
  uint32_t flush_second_ = 0;   // of the pending flush; 0: none is pending. See flush.cc
  uint32_t start_second_;

  uint64_t upload_bytes_ = 0;   // promised to uploads
  uint64_t upload_chunks_ = 0;  // taken by them
  uint64_t pinned_bytes_ = 0;
  std::unique_ptr<std::string_view[]> further_;  // of the last result; as many as a value can have
  std::span<const op::Op> batch_;
  std::array<Index::Lookup, kMaxBatch> lookups_;  // where locate() believes the batch's items to be ...
  uint64_t guessed_at_ = 0;                       // ... as long as the index has not changed since
  bool is_untouched_ = false;                     // in a file that says "clean", and nothing of it has changed yet
  std::string empty_because_;
};

// Move-only; must end before its store does. Ends on the store's thread, or when that thread is gone.
class Store::Pin {
 public:
  Pin() = default;
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin() { release(); }

  explicit operator bool() const { return store_ != nullptr; }
  void release();
  uint32_t length() const { return length_; }
  uint64_t version() const { return version_; }
  uint32_t client_flags() const;
  // What a kChunk op of this version answers, even if the key has another value by now. kChanged: a value of more than
  // 1 MiB has been appended to.
  op::Result chunk(uint32_t offset, uint32_t length) const;

 private:
  friend class Store;
  Pin(Store* store, ItemRef ref, uint64_t version, uint32_t length)
      : store_(store), ref_(ref), version_(version), length_(length) {}
  Store* store_ = nullptr;
  ItemRef ref_ = {};
  uint64_t version_ = 0;
  uint32_t length_ = 0;
};

// Move-only; must end before its store does. Ends on the store's thread, or when that thread is gone.
class Store::Upload {
 public:
  Upload() = default;
  Upload(Upload&& other) noexcept;
  Upload& operator=(Upload&& other) noexcept;
  ~Upload() { release(); }

  explicit operator bool() const { return store_ != nullptr; }
  void release();
  // Takes the next part. Parts come in order without gaps (a lane is first-in first-out), so that no byte of the value
  // is ever one that the client did not send. kInvalid: `offset` is not received(), or more bytes than were reserved.
  // kOutOfMemory: there is no room for them.
  [[nodiscard]] op::ResultCode write(uint32_t offset, std::string_view bytes);
  uint32_t received() const { return pieces_.length(); }
  uint32_t total_length() const { return total_length_; }
  bool is_complete() const { return received() == total_length_; }
  std::string_view key() const { return key_; }

 private:
  friend class Store;
  Upload(Store* store, std::string_view key, uint32_t total_length, uint64_t promised);
  // The value goes on to be an item's.
  Pieces take_pieces();
  size_t extents() const { return pieces_.extents(); }

  Store* store_ = nullptr;
  std::string key_;
  uint32_t total_length_ = 0;
  uint64_t promised_ = 0;  // bytes of the uploads' share
  Pieces pieces_;
};

struct Store::Reservation {
  op::ResultCode code = op::ResultCode::kOutOfMemory;
  Upload upload;
};

}  // namespace egret::store
