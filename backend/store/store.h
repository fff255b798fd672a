// The store of one partition: keys to values within an exact memory limit, with memcached's semantics.
//
//   Op ─ prepare (prefetch buckets) ─▶ locate (match tags, prefetch items) ─▶ execute, in order ─▶ Result
//                                                                              │
//   Index (index.h): key hash → record                                         ├─ get.cc set.cc arith.cc flush.cc
//   Log (log.h): records in pages, two queues ◀────────────────────────────────┘  upload.cc pins.cc
//   Pieces (value.h): large values in pages and chunks      reclaim.cc: eviction, compaction   sweep.cc: expiry
//   Pages (pages.h): one arena of 64 KiB pages              check.cc: the checker              warm.cc: restarts
//
// It knows neither slots nor memcached text. Thread: one, the partition's own, for everything, create() included or
// not. Memory: one arena, in which all of it lives, so the limit is exact. Nothing on the data
// path locks or allocates from the heap, but for the lists of large values that are being stored. No call does more
// than a bounded amount of work (work.h). Errors: results say what happened (op::ResultCode); only create() can fail
// otherwise.
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
#include "op/records.h"
#include "op/stats.h"
#include "store/arena.h"
#include "store/counters.h"
#include "store/evictions.h"
#include "store/ghosts.h"
#include "store/index.h"
#include "store/item.h"
#include "store/layout.h"
#include "store/log.h"
#include "store/pages.h"
#include "store/value.h"
#include "store/work.h"

namespace egret::store {

inline constexpr size_t kMaxBatch = 32;

struct StoreConfig {
  uint64_t memory_limit =
      64u << 20;  // at the start; bytes, index and overhead included; at least least_memory(item_size_max)
  uint32_t item_size_max = 1u << 20;   // as memcached counts an item (op::memcached_item_size)
  bool evict = true;                   // false: answer kOutOfMemory when full, like memcached -M
  uint64_t hash_seed = 0;              // every op's hash must be op::hash_key(key, hash_seed)
  const base::Clock* clock = nullptr;  // outlives the store
  // The n-th change (n = first_version, first_version + 1, ...) gets internal version n and CAS n × cas_stride +
  // cas_offset: partition p of N takes stride N and offset p, so that no two items of a backend share a CAS. cas_offset
  // < cas_stride.
  uint64_t first_version = 1;
  uint64_t cas_stride = 1;
  uint64_t cas_offset = 0;
  bool populate = false;  // have all memory resident before anything is served
  // A file (on tmpfs or hugetlbfs) that keeps everything over a restart; empty: none. See warm.cc.
  std::string warm_path = {};
};

inline constexpr uint64_t kMinMemory = 1u << 20;
inline constexpr uint64_t kMaxMemory = kPageSize * kMaxPages;
// What a store for such items needs at least, and why, in words.
uint64_t least_memory(uint32_t item_size_max);
std::string least_memory_text(uint32_t item_size_max);

class Store {
 public:
  class Pin;
  class Upload;
  struct Reservation;

  static base::Expected<std::unique_ptr<Store>> create(const StoreConfig& config);
  // The hash seed of the store in that file, if a clean stop left one (else why not): create() takes it up only under
  // the same seed.
  static base::Expected<uint64_t> kept_hash_seed(const std::string& path);
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
  static constexpr uint32_t kNever = UINT32_MAX;

  // Ops that will be a batch soon: worth calling while another one is still to be executed. Each with its hash filled
  // in.
  void foresee(std::span<const op::Op> ops) const {
    for (const op::Op& op : ops) index_.prefetch(op.hash);
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
  // Appends a row for every counter that the store keeps, in the order of StatId.
  // kReset: as `stats` shows them; kStart: as if they had never been reset.
  enum class Since : uint8_t { kReset, kStart };
  void append_stats(std::vector<op::StatRow>& rows, Since since = Since::kReset) const;
  // Rows of StatGroup::kSizeClasses.
  void append_class_stats(std::vector<op::StatRow>& rows) const;
  void reset_stats();
  uint64_t item_count() const { return counters_[op::StatId::kCurrItems]; }
  // Bytes of the arena that are in use, in whole pages; never more than the limit, unless that has just been lowered.
  uint64_t memory_used() const {
    const uint64_t not_used = uint64_t{pages_.free_count()} + pages_.withheld() + uncounted_pages();
    return (pages_.size() - not_used) * kPageSize;
  }
  Backing backing() const { return arena_.backing(); }
  uint64_t huge_bytes() const { return arena_.huge_bytes(); }
  // Why what was in the file was not taken up; empty if it was, or without a file.
  const std::string& empty_because() const { return empty_because_; }

  // --- The limit (limit.cc)
  // Takes effect in steps, of begin_pass() and idle_step(); memory_limit() says it at once. kOutOfMemory: it is not
  // within least_limit() .. most_limit().
  op::ResultCode set_memory_limit(uint64_t bytes);
  uint64_t memory_limit() const { return limit_; }
  uint64_t least_limit() const;
  uint64_t most_limit() const;

  // The checker (check.cc): every item is reachable and filed under its own hash and tag, records tile their pages,
  // what large values hold is what is taken, accounting is exact, used <= limit. Reads everything. Says why not.
  bool check_invariants(std::string* why);

 private:
  struct Superblock;
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
  // A record that stays as and where it is, while somebody reads it.
  struct PinEntry {
    ItemRef ref;
    uint32_t count = 0;
    uint64_t bytes = 0;        // of the pins' share
    bool is_detached = false;  // out of the index: it goes with its last pin
  };
  Store(const StoreConfig& config, Arena arena, const Layout& layout, const Superblock* kept);

  // store.cc
  Item& item(ItemRef ref) const { return log_.item(ref); }
  Item& item(Slot slot) const { return log_.item(slot.ref()); }
  bool is_expired(const Item& item) const { return item.exptime() != 0 && item.exptime() <= now_; }
  bool is_flushed(const Item& item) const { return item.version() < flushed_before_; }
  bool is_live(const Item& item) const { return !is_flushed(item) && !is_expired(item); }
  void prefetch_value(size_t index) const;
  // The live item of a key. An expired or flushed one is removed and counted.
  Slot find(std::string_view key, uint64_t hash) {
    const Slot guess = std::exchange(guess_, Slot{});
    const bool is_right = guess && guessed_at_ == index_.changes() && item(guess).has_key(key);
    const Slot slot = is_right ? guess : index_.find(key, hash);
    if (!slot || is_live(item(slot))) return slot;
    remove_unseen(slot, hash);
    return Slot{};
  }
  void remove_unseen(Slot slot, uint64_t hash);
  // The live item of a key; nothing changes and nothing is counted.
  Slot peek(std::string_view key, uint64_t hash) const;
  // What `exptime` means now, in seconds since the epoch; 0: never.
  uint32_t deadline_of(int64_t exptime) const;
  uint64_t cas_of(const Item& item) const;
  op::Result dispatch(const op::Op& op);
  op::Result perform(const op::Op& op);
  void end_step();
  uint64_t large_budget() const;
  void count_in(const Item& item);
  void count_out(const Item& item);
  void remove(Slot slot, uint64_t hash);
  // Out of the index; its memory goes, unless it is pinned.
  void drop(ItemRef ref);
  void free_record(ItemRef ref);

  // get.cc
  static bool is_plain_get(const op::Op& op) {
    return op.code == op::OpCode::kGet && (op.options & ~(op::kWantCas | op::kPin)) == 0;
  }
  op::Result plain_get(const op::Op& op);
  op::Result get(const op::Op& op);
  op::Result look(const op::Op& op);
  op::Result vivify(const op::Op& op);
  op::Result chunk(const op::Op& op);
  op::Result chunk_of(const Item& item, uint32_t offset, uint32_t length);
  op::Result erase(const op::Op& op);
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
  op::Result set(const op::Op& op, Upload* upload);
  op::Result judge_and_store(const op::Op& op, Upload* upload);
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
  void set_expires(Slot slot, bool expires);

  // arith.cc
  op::Result arith(const op::Op& op);
  op::Result create_number(const op::Op& op);
  bool write_number(const op::Op& op, Slot slot, uint64_t number);
  op::Result number_result(uint64_t number, const Item& item) const;

  // flush.cc
  op::Result flush(const op::Op& op);
  void fire_flush();

  // reclaim.cc
  bool ensure_room(uint32_t units, uint32_t pages);
  void pay_debt();
  uint32_t reclaim(uint32_t units);
  bool begin_drain(bool hard);
  bool force_drain(uint32_t wanted_free);
  uint32_t drain_group(bool hard, uint32_t wanted_free);
  bool settle(ItemRef ref, uint64_t hash, bool hard);
  bool keep(Slot slot, Queue queue, uint32_t frequency);
  void gather_chunks(Item& item);
  void evict(Slot slot, uint64_t hash, Queue queue);
  void reclaim_dead(Slot slot, uint64_t hash);

  // sweep.cc
  bool sweep_some();
  void sweep_bucket(uint32_t number);
  void note_unswept_flush();

  // limit.cc
  uint32_t uncounted_pages() const { return layout_.fixed - layout_.fixed_of(pages_counted_); }
  void choose_targets();
  bool adjust_some();
  void take_back(uint32_t pages);

  // walk.cc
  uint64_t walk_items(uint64_t position, uint8_t size_class);
  uint64_t walk_bucket(uint64_t position, uint8_t size_class);
  op::RecordHead record_of(const Item& item) const;

  // pins.cc
  PinEntry* find_pin(ItemRef ref);
  void end_pin(ItemRef ref);

  // check.cc
  bool check_records(std::string* why);
  bool check_large(std::string* why);

  // warm.cc
  static uint64_t checksum_of(const Superblock& block);
  static const char* unusable_because(const Superblock& block);
  static const char* unfit_because(const Superblock& block, const StoreConfig& config, const Arena& arena);
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
  Pages pages_;
  Index index_;
  Log log_;
  Ghosts ghosts_;
  Counters counters_;
  StepWork work_;

  uint64_t moved_ = 0;           // seconds, by move_clock()
  uint32_t now_ = 0;             // seconds since the epoch, read by begin_pass()
  uint64_t clock_read_ns_ = 0;   // when begin_pass(now_ns) last read them
  uint64_t version_;             // of the next change
  uint64_t flushed_before_ = 0;  // items of smaller versions are hidden
  uint32_t flush_second_ = 0;    // of the pending flush; 0: none is pending. See flush.cc
  uint32_t start_second_;
  uint64_t expiring_items_ = 0;

  uint64_t limit_;               // bytes
  PageNumber pages_counted_;     // of the highest limit so far
  uint32_t to_withhold_ = 0;     // of these; see limit.cc
  uint32_t reserve_;             // free pages that only reclaiming may take
  uint32_t free_target_;         // free pages that reclaiming works for
  uint32_t debt_ = 0;            // units written since it last worked
  uint32_t drain_at_ = 0;        // units of the page being drained that are done
  bool compacts_ = false;        // whether all that is alive in it stays
  bool gathered_last_ = false;   // whether the page before was drained for the sake of chunks
  uint32_t sweep_at_ = 0;        // the next bucket to sweep
  uint32_t sweep_second_ = 0;    // when this turn began
  bool sweeps_flushed_ = false;  // this turn looks at every item, since there has been a flush
  bool flush_unswept_ = false;
  uint32_t flush_sweep_second_ = 0;  // what a flush has hidden is swept from here on

  uint64_t upload_bytes_ = 0;   // promised to uploads
  uint64_t upload_chunks_ = 0;  // taken by them
  uint64_t pinned_bytes_ = 0;
  std::vector<PinEntry> pins_;
  std::unique_ptr<std::string_view[]> further_;  // of the last result; as many as a value can have
  std::span<const op::Op> batch_;
  std::array<Index::Lookup, kMaxBatch> lookups_;  // where locate() believes the batch's items to be ...
  uint64_t guessed_at_ = 0;                       // ... as long as the index has not changed since
  Slot guess_;                                    // of the op that is being executed
  Evictions evictions_;
  struct Found {
    uint64_t position;
    ItemRef ref;
  };
  std::vector<Found> found_;   // in the bucket that a walk is at
  std::string page_;           // of records, the last
  bool is_untouched_ = false;  // in a file that says "clean", and nothing of it has changed yet
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
