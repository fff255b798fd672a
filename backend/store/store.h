// The store of one partition: keys to values within an exact memory limit, with memcached's semantics.
//
//   Op ─ prepare (prefetch buckets) ─▶ locate (match tags, prefetch items) ─▶ execute, in order ─▶ Result
//                                                                              │
//   Store      the ops: get.cc set.cc arith.cc flush.cc upload.cc pins.cc ◀────┘   check.cc   warm.cc: restarts
//     ├ Reclaimer    eviction and compaction        ├ Walker        walks for `lru_crawler metadump`, `watch evictions`
//     ├ Sweeper      removes what is expired        └ MemoryLimit   a limit that changes while the store serves
//     ├ Purger       removes what is another's
//     └ Items        the items, as all of these share them
//         ├ Index    key hash → record              ├ Pages   one arena of 64 KiB pages
//         └ Log      records in pages, two queues   └ Pieces  (value.h) large values in pages and chunks
//
// It knows neither slots nor memcached text. Thread: the partition's; create() may run on another one.
// Memory: one arena holds everything, so the limit is exact. The data path neither locks nor allocates from the heap,
// except for the extent lists of large values that are being stored. Each call does a bounded amount of work (work.h).
// Errors: op::ResultCode; only create() returns a Status.
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
#include "store/config.h"
#include "store/index/ghosts.h"
#include "store/items.h"
#include "store/memory/arena.h"
#include "store/memory/layout.h"
#include "store/upkeep/evictions.h"
#include "store/upkeep/memory_limit.h"
#include "store/upkeep/purger.h"
#include "store/upkeep/reclaimer.h"
#include "store/upkeep/sweeper.h"
#include "store/upkeep/walker.h"

namespace egret::store {

inline constexpr size_t kMaxBatch = 32;

// The hash seed of the store in that file if a clean stop left one, else why there is none. create() continues from the
// file only with the same seed.
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

  // One pass of the poll loop: reads the clock once (an item has expired if its exptime is <= this second), fires a
  // delayed flush that is due, and does a step of upkeep. Call it before the first op after every pause. For a caller that
  // has read base::Clock::now_ns() already it is cheaper, but the store's time may lag by kSecondLag.
  void begin_pass(uint64_t now_ns = kNotRead) {
    if (now_ns - clock_read_ns_ < kSecondLag) return;
    if (now_ns != kNotRead) clock_read_ns_ = now_ns;
    pass();
  }
  static constexpr uint64_t kNotRead = UINT64_MAX;
  static constexpr uint64_t kSecondLag = 5'000'000;  // ns
  // A bounded step of upkeep in an idle moment (free pages, sweep items). False: there is none to do at present.
  bool idle_step();
  // Seconds until idle_step() has something to do again; kNever: not until the next op.
  uint32_t upkeep_in_seconds() const;
  // For tests of expiry: adds so many seconds to the clock. False: the result exceeds the last second that can be
  // stored.
  bool move_clock(uint64_t seconds);
  static constexpr uint32_t kNever = Sweeper::kNever;

  // Prefetches for ops of the next batch. Call it before the present batch is executed. Each op's hash is filled in.
  void foresee(std::span<const op::Op> ops) const {
    for (const op::Op& op : ops) items_.index.prefetch(op.hash);
  }
  // A batch: at most kMaxBatch ops, each with its hash filled in. The span must stay valid until the last execute().
  void prepare(std::span<const op::Op> ops);
  void locate();
  // Executes ops[index] of the prepared batch: Get, Set, Delete, Arith, Chunk, Flush, Iterate; others answer
  // kUnsupported. Call it in order, once for each op that the store executes. The result's value and further pieces
  // view the store's memory until the next non-const call. A get of a large value returns its first kMaxChunk bytes; a
  // chunk returns the bytes asked for, up to kMaxChunk.
  op::Result execute(size_t index);
  static constexpr uint32_t kMaxChunk = 192u << 10;

  // --- Values in parts. An Upload is room for a value that nobody sees until its commit().
  // All uploads together hold at most memory().upload_room bytes. That is 1/8 of the memory limit, or one item of item_size_max,
  // or what set_upload_rights() says, whichever is most. The rights count only up to half of the limit, and up to three quarters
  // of it less what pins hold: the rest is left to items.
  // kOk: the upload is open. kTooLarge, kOutOfMemory: it is not. Then call refuse_set() when the client's Commit comes
  // (or at once, if the set itself is known), since a failed plain set also removes the old item.
  Reservation reserve(std::string_view key, uint32_t total_length);
  // How many bytes all clients together have a right to upload at one time; 0 until it is called.
  void set_upload_rights(uint64_t bytes) { upload_rights_ = bytes; }
  // For a set whose value could not be taken: counts it, and removes the old item if it is a plain set.
  op::Result refuse_set(const op::Op& set, op::ResultCode why);

  // Keeps the item's present value readable until the Pin ends, even if the key changes. Empty if there is no such
  // item, or if all pins of that use together would hold more than its share of the memory limit (pin_table.h).
  Pin pin(std::string_view key, uint64_t hash, PinUse use = PinUse::kRead);

  // --- Statistics
  // Appends the rows of that group. kGeneral: one for every counter of the store, in the order of StatId. `since`:
  // count from the last `stats reset`, or from the start.
  enum class Since : uint8_t { kReset, kStart };
  void append_stats(op::StatGroup group, std::vector<op::StatRow>& rows, Since since = Since::kReset) const;
  void reset_stats();
  struct Counts {
    uint64_t items;
    uint64_t long_work_ns;  // the work, as work.h counts it, of all steps so far that took more than 1 us
    bool flush_is_pending;  // a delayed one has not fired yet
  };
  Counts counts() const {
    return {.items = items_.counters[op::StatId::kCurrItems],
            .long_work_ns = items_.long_work_ns,
            .flush_is_pending = flush_second_ != 0};
  }
  // What create() found.
  struct Opening {
    const Arena& arena;
    const std::string& empty_because;  // why it did not continue from its file; empty if it did, or if there is no file
  };
  Opening opening() const { return {arena_, empty_because_}; }

  // Removes items that are not this store's any more.
  Purger& purger() { return purger_; }

  // --- Memory, in bytes
  struct Memory {
    uint64_t used;         // whole pages; at most `limit`, except just after that was lowered
    uint64_t limit;        // the present one
    uint64_t least_limit;  // the range of set_memory_limit()
    uint64_t most_limit;
    uint64_t upload_room;  // what all uploads may hold
    uint64_t pin_room;     // what all pins of readers may hold
  };
  Memory memory() const;
  // memory().limit changes at once; the memory follows in steps of begin_pass() and idle_step(). kOutOfMemory: the
  // number is not within memory().least_limit .. most_limit.
  op::ResultCode set_memory_limit(uint64_t bytes);

 private:
  friend class Checker;
  // What to make a record of. The value is `first` followed by `second`, or, if `pieces` is set, what they hold.
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
  // The live item of a key. Removes and counts an expired or flushed one. `guess`: where it may be.
  Slot find(std::string_view key, uint64_t hash, Slot guess) {
    const bool is_right = guess && items_.item(guess).has_key(key);
    const Slot slot = is_right ? guess : items_.index.find(key, hash);
    if (!slot || items_.is_live(items_.item(slot))) return slot;
    remove_unseen(slot, hash);
    return Slot{};
  }
  void remove_unseen(Slot slot, uint64_t hash);
  // The live item of a key. Changes and counts nothing.
  Slot peek(std::string_view key, uint64_t hash) const;
  // The second since the epoch that `exptime` means now; 0: never.
  uint32_t deadline_of(int64_t exptime) const;
  op::Result dispatch(const op::Op& op, Slot guess);
  op::Result perform(const op::Op& op, Slot guess);
  void pass();
  uint64_t large_budget() const;
  uint64_t upload_room() const;
  uint64_t pin_budget(PinUse use) const;
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
  void copy_value(const Item& from, Pieces& to);
  op::Result stored(ItemRef ref);
  op::Result no_room();
  void disown(ItemRef ref);
  bool is_too_large(std::string_view key, uint32_t client_flags, uint64_t value_length) const;
  bool overwrite(const Draft& draft, Slot old);
  // Makes a record of the draft and enters it in the index, replacing the key's item. None: no room.
  ItemRef place(const Draft& draft, uint64_t hash);
  void write(const Draft& draft, ItemRef ref);
  // Adds that field (0 at first) to the item, which may have to move. None: there is no room.
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

  // warm.cc
  // The superblock of a file to continue from. Null: start empty, and the file is marked in use.
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
  Purger purger_;

  uint64_t moved_ = 0;          // seconds added by move_clock()
  uint64_t clock_read_ns_ = 0;  // when begin_pass(now_ns) last read the clock
  uint32_t flush_second_ = 0;   // when the pending flush fires; 0: none is pending. See flush.cc
  uint32_t start_second_;

  uint64_t upload_rights_ = 0;                   // see set_upload_rights()
  uint64_t upload_bytes_ = 0;                    // promised to uploads
  uint64_t upload_chunks_ = 0;                   // taken by uploads
  std::unique_ptr<std::string_view[]> further_;  // Result::further of the last result; room for the most pieces
  std::span<const op::Op> batch_;
  std::array<Index::Lookup, kMaxBatch> lookups_;  // locate()'s guesses of where the batch's items are ...
  uint64_t guessed_at_ = 0;                       // ... valid while Index::changes() is still this
  bool is_untouched_ = false;                     // the file still says "clean": nothing in it has changed yet
  std::string empty_because_;
};

// A batch of one op.
inline op::Result execute_one(Store& store, const op::Op& op) {
  store.prepare({&op, 1});
  store.locate();
  return store.execute(0);
}

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
  // Answers a kChunk op of this version, even if the key has another value by now. kChanged: something was appended to
  // a value of more than 1 MiB.
  op::Result chunk(uint32_t offset, uint32_t length) const;
  // Whether the value's bytes stay unchanged, in the same place, until this pin ends. An append to a longer value takes
  // them over into the new version.
  bool keeps_bytes() const { return length_ <= kMostCopied; }
  static constexpr uint32_t kMostCopied = 1u << 20;  // an append to a pinned value copies so many bytes of it
  // Another one of the same version.
  Pin share() const;

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
  // Takes the next part. Parts must come in order without gaps, as a lane delivers them, so that every byte of the
  // value is one that the client sent. kInvalid: `offset` is not received(), or the part exceeds what was reserved.
  // kOutOfMemory: there is no room for it.
  [[nodiscard]] op::ResultCode write(uint32_t offset, std::string_view bytes);
  // The same in two steps: room for up to so many bytes, which the caller fills from the front; and how many it filled.
  // Nothing else of the store may be called between them. After an error there is no second step.
  [[nodiscard]] op::ResultCode begin_part(uint32_t offset, uint32_t length, op::PartRoom& room);
  void end_part(uint32_t length);
  uint32_t received() const { return pieces_.length(); }
  uint32_t total_length() const { return total_length_; }
  bool is_complete() const { return received() == total_length_; }
  // Executes the op as a kSet of the uploaded value: mode, CAS, flags and exptime come from `commit`. Its key must be
  // the one that was reserved. Ends the upload in every case. kNoUpload: parts are missing.
  op::Result commit(const op::Op& commit);
  std::string_view key() const { return key_; }

 private:
  friend class Store;
  Upload(Store* store, std::string_view key, uint32_t total_length, uint64_t promised);
  // Hands the pieces to the item that they become.
  Pieces take_pieces();
  op::ResultCode admit(uint32_t offset, size_t length);
  void count_chunks(uint32_t before);
  size_t extents() const { return pieces_.extents(); }

  Store* store_ = nullptr;
  std::string key_;
  uint32_t total_length_ = 0;
  uint64_t promised_ = 0;  // bytes charged to the uploads' share
  Pieces pieces_;
  uint32_t before_part_ = 0;         // received() when the part began
  uint32_t chunks_before_part_ = 0;  // pieces_.chunks() then
};

struct Store::Reservation {
  op::ResultCode code = op::ResultCode::kOutOfMemory;
  Upload upload;
};

// The checker (check.cc): every item is reachable under its own hash and tag, records tile their pages, large values
// own exactly the taken chunks, counts are exact, used <= limit. Reads the whole store. `why`: what is wrong.
bool check_invariants(const Store& store, std::string* why);

}  // namespace egret::store
