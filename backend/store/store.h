// The store of one partition: keys to values within an exact memory limit, with memcached's semantics.
//
//   Op ─ prepare (prefetch buckets) ─▶ locate (match tags, prefetch items) ─▶ execute, in order ─▶ Result
//                                                                              │
//   Index (index.h): key hash → item                                           ├─ get.cc set.cc arith.cc flush.cc
//   Heap (heap.h): blocks of one arena, CLOCK eviction in address order ◀──────┘  large.cc (uploads, pins)
//
// It knows neither slots nor memcached text. Thread: one, the partition's own, for everything, create() included or
// not. Memory: one arena of `memory_limit` bytes, reserved at create() and touched only as it fills; index and items
// all live in it, so the limit is exact. Nothing on the data path allocates from the heap or locks. Errors: results say
// what happened (op::ResultCode); only create() can fail otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "op/op.h"
#include "op/stats.h"
#include "store/arena.h"
#include "store/counters.h"
#include "store/heap.h"
#include "store/index.h"
#include "store/item.h"

namespace egret::store {

inline constexpr size_t kMaxBatch = 32;

struct StoreConfig {
  uint64_t memory_limit = 64u << 20;   // bytes, index and overhead included; at least kMinMemory and 2 × item_size_max
  uint32_t item_size_max = 1u << 20;   // as memcached counts an item (see counted_size() in item.h)
  bool evict = true;                   // false: answer kOutOfMemory when full, like memcached -M
  uint64_t hash_seed = 0;              // every op's hash must be op::hash_key(key, hash_seed)
  const base::Clock* clock = nullptr;  // outlives the store
  // The n-th change (n = first_version, first_version + 1, ...) gets internal version n and CAS n × cas_stride +
  // cas_offset: partition p of N takes stride N and offset p, so that no two items of a backend share a CAS. cas_offset
  // < cas_stride.
  uint64_t first_version = 1;
  uint64_t cas_stride = 1;
  uint64_t cas_offset = 0;
};

inline constexpr uint64_t kMinMemory = 1u << 20;

class Store {
 public:
  class Pin;
  class Upload;
  struct Reservation;

  static base::Expected<std::unique_ptr<Store>> create(const StoreConfig& config);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // One pass of the poll loop: reads the clock once (expiry is `<=` this second everywhere) and fires an overdue
  // delayed flush. Call it before the first op after every pause.
  void begin_pass();
  // The same for a caller who has read the clock already (base::Clock::now_ns): costs nothing, but may be late by
  // kSecondLag.
  void begin_pass(uint64_t now_ns) {
    if (now_ns - clock_read_ns_ < kSecondLag) return;
    clock_read_ns_ = now_ns;
    begin_pass();
  }
  static constexpr uint64_t kSecondLag = 5'000'000;  // ns

  // A batch: at most kMaxBatch ops, each with its hash filled in. The span must stay valid until the last execute().
  void prepare(std::span<const op::Op> ops);
  void locate();
  // Executes ops[index] of the prepared batch: Get, Set, Delete, Arith, Chunk, Flush; others answer kUnsupported.
  // Strictly in order, once each (ops that somebody else executes may be left out). Result.value views the store's
  // memory until the next execute(), reserve(), commit() or end of a Pin or Upload.
  op::Result execute(size_t index);
  // prepare, locate and execute of a single op.
  op::Result execute_one(const op::Op& op);

  // --- Values in parts. An Upload is room for a value that nobody sees until commit().
  // All uploads together hold at most max(1/8 of the memory limit, one item of item_size_max).
  // kOk: the upload is open. kTooLarge, kOutOfMemory: it is not; call refuse_set() when the client's Commit comes (or
  // at once, if the op says how it was meant), since a failed plain set also removes the old item.
  Reservation reserve(std::string_view key, uint64_t hash, uint32_t total_length);
  // Judges the op now, as a kSet of the uploaded value: mode, CAS, flags and exptime come from `commit`. Its key must
  // be the one that was reserved. Always consumes the upload. kNoUpload: parts are missing.
  op::Result commit(Upload&& upload, const op::Op& commit);
  // What becomes of a set whose value could not be taken: counts it, and removes the old item if it is a plain set.
  op::Result refuse_set(const op::Op& set, op::ResultCode why);

  // Keeps the item's present value readable, whatever happens to the key, until the Pin ends. Empty if there is no such
  // item, or if all pins together would hold more than max(1/8 of the memory limit, one item of item_size_max).
  Pin pin(std::string_view key, uint64_t hash);

  // --- Statistics
  // Appends a row for every counter that the store keeps, in the order of StatId.
  void append_stats(std::vector<op::StatRow>& rows) const;
  void reset_stats();
  uint64_t item_count() const { return counters_[op::StatId::kCurrItems]; }
  // Bytes of the arena that hold items, uploads, pinned versions and the index; never more than memory_limit.
  uint64_t memory_used() const;

  // The checker, for tests (check.cc): every item is reachable and filed under its own hash and tag, blocks tile the
  // heap, accounting is exact, used ≤ limit. Reads everything. Says why not.
  bool check_invariants(std::string* why) const;

 private:
  // Where the parts of the arena begin: [ 8 B nothing | directory | crossing map | heap ... | index ].
  struct Layout;
  Store(const StoreConfig& config, Arena arena, const Layout& layout);

  // store.cc
  Item& item(ItemRef ref) const { return heap_.item(ref); }
  bool is_expired(const Item& item) const { return item.exptime != 0 && item.exptime <= now_; }
  bool is_flushed(const Item& item) const { return item.version < flushed_before_; }
  // The live item of a key. An expired or flushed one is removed and counted.
  ItemRef find(std::string_view key, uint64_t hash);
  // The live item of a key; nothing changes and nothing is counted.
  ItemRef peek(std::string_view key, uint64_t hash) const;
  // What `exptime` means now, in seconds since the epoch; 0: never.
  uint32_t deadline_of(int64_t exptime) const;
  uint64_t cas_of(uint64_t version) const { return version * config_.cas_stride + config_.cas_offset; }
  op::Result dispatch(const op::Op& op);
  uint64_t large_budget() const;

  // get.cc
  op::Result get(const op::Op& op);
  op::Result chunk(const op::Op& op) const;
  op::Result erase(const op::Op& op);
  op::Result hit(const Item& item, bool with_cas) const;

  // set.cc
  op::Result set(const op::Op& op, Upload* upload);
  op::Result judge_and_store(const op::Op& op, Upload* upload);
  op::Result replace_value(const op::Op& op, ItemRef old, Upload* upload);
  op::Result extend_value(const op::Op& op, ItemRef old, std::string_view added);
  op::Result stored(ItemRef ref);
  bool is_too_large(std::string_view key, uint32_t client_flags, uint64_t value_length) const;
  // Lays out an item that nobody sees yet, its value still to be written; empty: no room. `keep` is not evicted for it.
  ItemRef make_item(std::string_view key, bool has_flags, uint64_t value_length, ItemRef keep);
  bool write_in_place(const op::Op& op, ItemRef old);
  // Makes a complete item visible, in the place of `old` if there is one. False: no room in the index, nothing changed.
  bool link(ItemRef ref, ItemRef old, uint64_t hash);
  void remove(ItemRef ref, uint64_t hash);
  void drop(ItemRef ref);

  // arith.cc
  op::Result arith(const op::Op& op);
  op::Result create_number(const op::Op& op);
  bool write_number(const op::Op& op, ItemRef ref, uint64_t number);
  op::Result number_result(uint64_t number, uint64_t version) const;

  // flush.cc
  op::Result flush(const op::Op& op);
  void fire_flush();

  // evict.cc
  ItemRef allocate(uint64_t units, ItemRef keep);
  bool make_room(uint32_t units);
  bool may_evict(const Item& item) const { return item.has(kLinked) && item.pins == 0; }
  uint32_t evict(ItemRef ref);
  bool give_granule();
  bool evict_from_bucket(uint64_t hash);

  // large.cc
  void end_pin(ItemRef ref);
  void end_upload(ItemRef ref);

  const StoreConfig config_;
  base::OwnerThread owner_;
  Arena arena_;
  Heap heap_;
  Index index_;
  Counters counters_;

  uint32_t now_ = 0;             // seconds since the epoch, read by begin_pass()
  uint64_t clock_read_ns_ = 0;   // when begin_pass(now_ns) last read them
  uint64_t version_;             // of the next change
  uint64_t flushed_before_ = 0;  // items of smaller versions are hidden
  uint32_t flush_second_ = 0;    // of the pending flush; 0: none is pending. See flush.cc
  uint32_t start_second_;
  uint64_t upload_bytes_ = 0;
  uint64_t pinned_bytes_ = 0;
  uint64_t index_retry_ = 0;  // inserts until a full heap is asked again for index room
  std::span<const op::Op> batch_;
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
  std::string_view value() const;
  uint64_t version() const;
  uint64_t cas() const;
  uint32_t client_flags() const;
  // What a kChunk op of this version answers, even if the key has another value by now.
  op::Result chunk(uint32_t offset, uint32_t length) const;

 private:
  friend class Store;
  Pin(Store* store, ItemRef ref) : store_(store), ref_(ref) {}
  Store* store_ = nullptr;
  ItemRef ref_ = {};
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
  // is ever one that the client did not send. False: `offset` is not received(), or more bytes than were reserved.
  [[nodiscard]] bool write(uint32_t offset, std::string_view bytes);
  uint32_t received() const { return received_; }
  uint32_t total_length() const;
  bool is_complete() const { return received_ == total_length(); }
  std::string_view key() const;

 private:
  friend class Store;
  Upload(Store* store, ItemRef ref) : store_(store), ref_(ref) {}
  Store* store_ = nullptr;
  ItemRef ref_ = {};
  uint32_t received_ = 0;
};

struct Store::Reservation {
  op::ResultCode code = op::ResultCode::kOutOfMemory;
  Upload upload;
};

}  // namespace egret::store
