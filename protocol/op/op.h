// The op vocabulary: what one key-value operation asks and what is answered, whatever dialect it came in and whatever
// carries it. It is the vocabulary of memcached's meta commands (protocol.txt, "Meta Commands"), to which the classic
// text and binary commands map. Plain values: views point into memory that the holder of the Op or Result owns.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace egret::op {

// Values are wire format: never renumber. An unknown code answers kUnsupported.
enum class OpCode : uint8_t {
  // Read; with kTouch also gives a new exptime; with kNoValue answers the metadata alone; with kCompareCas leaves the
  // value out if the item's CAS is `cas`.
  kGet = 1,
  kSet = 2,     // store `value` as `mode` says; with kCompareCas only if the item's CAS is `cas`
  kDelete = 3,  // with kCompareCas only if the item's CAS is `cas`; with kInvalidate, kTouch also gives a new exptime
  // Add `delta` to (kDecrement: take it from) a decimal value. kCreate: a missing item becomes `initial`, with
  // `vivify_exptime`. kTouch: an existing one gets `exptime`.
  kArith = 4,
  kChunk = 5,  // `length` bytes from `offset` of the value whose internal version is `version`
  // One part of a value sent in parts: `value` goes to `offset` of upload `upload_id`, which has `length` bytes in all.
  kUpload = 6,
  kCommit = 7,  // make a finished upload visible, judged now like a kSet (mode, CAS)
  kAbort = 8,   // drop an upload
  kFlush = 9,   // hide all items stored before the moment `exptime` (a delay, memcached's rule) fires
  // The counters of group `group`, from row `version` on (of kSizeClasses: from id `version` on); as many as fit,
  // total_length says how many there are.
  kStats = 10,
  // A page of records (op/records.h) of source `group`, from the cursor `version` on; the result's version is the next.
  kIterate = 11,
  kAdmin = 12,  // `group` says what: AdminVerb
  kPing = 13,
};

// Whether an op of this code names an item by its key. An unknown code does not.
constexpr bool has_key(OpCode code) {
  return code >= OpCode::kGet && code <= OpCode::kAbort;
}

enum class SetMode : uint8_t { kSet = 0, kAdd = 1, kReplace = 2, kAppend = 3, kPrepend = 4 };
inline constexpr uint8_t kSetModes = 5;

enum class AdminVerb : uint8_t {
  kResetStats = 1,
  kCheck = 2,  // for tests: examine the whole store; `value` says what is wrong, empty: nothing. In checked builds only
  // `value`: a number (8 bytes, little-endian) of bytes, which becomes the memory limit of the whole backend.
  // kOutOfMemory: it cannot.
  kMemoryLimit = 3,
  // For tests, where the backend allows it (else kUnsupported): the clock by which items expire goes forward by `value`
  // seconds, a number as of kMemoryLimit. kInvalid: beyond the last second that an item can expire in.
  kMoveClock = 4,
};

// Option bits, one namespace for all ops. Wire format.
enum OpOptions : uint16_t {
  kCompareCas = 1 << 0,  // set, delete, arith, commit: `cas` must match, else kExists
  kTouch = 1 << 1,       // get, arith, delete with kInvalidate: `exptime` becomes the item's
  kNoValue = 1 << 2,     // get: leave the value out
  kWantCas = 1 << 3,     // answer with the CAS
  kDecrement = 1 << 4,   // arith
  kTouchFirst = 1 << 4,  // [T before R] get with kTouch and kRecache: the new exptime counts
  kCreate = 1 << 5,      // arith: create with `initial` and `vivify_exptime` when missing
  kPin = 1 << 6,         // get: keep this version for the chunks that follow; chunk: read the pinned version
  // The meta commands' (protocol.txt, "Meta Commands"; their flags in brackets).
  // [E] set, commit, arith, delete with kInvalidate or kDropValue, get with kVivify: the item's CAS becomes `new_cas`.
  kExplicitCas = 1 << 7,
  // [N] get, and set and commit as append or prepend: a missing item is created, empty, with `vivify_exptime`.
  kVivify = 1 << 8,
  kRecache = 1 << 9,  // [R] get: who finds less than `recache_below` seconds left, and is the first to, wins
  // [I] delete: mark as stale instead; set, commit with kCompareCas: an older CAS stores, but as stale.
  kInvalidate = 1 << 10,
  kDropValue = 1 << 11,  // [x] delete: only value, client flags and exptime go
  // [h l t] get, arith (ttl only): answer with the state before this access; [s] set, commit: with the value's length;
  // delete: with the length of what is gone.
  kWantMeta = 1 << 12,
  kPeek = 1 << 13,    // [me] get: leave no trace: neither last access nor fetched nor counters
  kNewTtl = 1 << 14,  // [T before t] get, arith, with kWantMeta: the ttl answered is the one after this access
  kNoBump = 1 << 15,  // [u] get: is no access: last access, fetched and standing stay
  // set, commit that want meta: if it is refused, the old item stays where it would behind a classic command. Without,
  // as behind an ms, it goes in every mode.
  kAsClassic = 1 << 15,
};

// What an item says of itself to a reader (Result::marks). Wire format.
enum ResultMarks : uint8_t {
  kFetched = 1 << 0,    // has been read before
  kStale = 1 << 1,      // [X] was invalidated
  kWon = 1 << 2,        // [W] this reader is the one to make it anew
  kTokenSent = 1 << 3,  // [Z] somebody else has been told so before
  kCreated = 1 << 4,    // [N] this reader has made it; of a number too, and, with kWantMeta, of what was stored
};

// One operation. Fields that its code does not name are ignored.
struct Op {
  OpCode code = OpCode::kPing;
  SetMode mode = SetMode::kSet;
  uint16_t options = 0;        // OpOptions
  uint8_t group = 0;           // stats group, admin verb, iterate: RecordSource
  uint8_t size_class = 255;    // iterate: only items of this one; kAnySizeClass (op/records.h): all
  uint32_t client_flags = 0;   // set, commit
  int64_t exptime = 0;         // as the client gave it: only the backend's clock interprets it
  int64_t vivify_exptime = 0;  // kVivify, kCreate: as exptime
  int64_t recache_below = 0;   // kRecache: seconds
  uint64_t cas = 0;
  uint64_t new_cas = 0;  // kExplicitCas; 0 is one
  uint64_t delta = 0;
  uint64_t initial = 0;
  uint64_t version = 0;    // chunk: internal version; stats, iterate: cursor
  uint32_t upload_id = 0;  // upload, commit, abort: chosen by the client, unique on its lane among live uploads
  uint32_t offset = 0;     // chunk, upload
  uint32_t length = 0;     // chunk: bytes wanted; upload: the whole value's
  std::string_view key;    // 1..250 bytes, except for flush, stats, iterate, admin and ping, which have none
  std::string_view value;  // set: the value; upload: this part; admin: what the verb needs
  uint64_t hash = 0;       // not on the wire: hash_key(key), by whoever routes or checks the op
};

inline constexpr uint32_t kMaxKeyLength = 250;
inline constexpr uint32_t kMaxValueLength = 128u << 20;

// Values are wire format: never renumber.
enum class ResultCode : uint8_t {
  kOk = 0,    // flush, admin, ping, stats, iterate, abort, an upload's part
  kHit = 1,   // get, chunk: the value (or what fits of it), flags, CAS
  kMiss = 2,  // get, delete, arith, a cas on nothing: no such item
  kStored = 3,
  kNotStored = 4,  // add, replace, append, prepend: the condition did not hold
  kExists = 5,     // the CAS did not match
  kDeleted = 6,
  kNumber = 7,        // arith: the new number
  kNonNumeric = 8,    // arith: the value is no decimal 64-bit number
  kTooLarge = 9,      // larger than item_size_max; for a set, the old item is gone too
  kOutOfMemory = 10,  // no room for it; for a set, the old item is gone too
  kChanged = 11,      // chunk: that version is gone
  kNoUpload = 12,     // upload, commit: unknown, dropped or incomplete
  kUnsupported = 13,  // an op this backend does not know
  kInvalid = 14,      // an op whose fields contradict each other
  kWrongPartition = 15,
  // Never on the wire: what rpc tells the proxy when no result came.
  kSessionLost = 100,
  kTimedOut = 101,
};

// The answer to one op. `value` points into memory of whoever produced it (store or slot), valid until it is next used.
struct Result {
  ResultCode code = ResultCode::kInvalid;
  uint32_t client_flags = 0;  // hit
  uint32_t total_length = 0;  // hit, stats: the whole value's length; value.size() may be less
  // Never on the wire. What ClientLane::hold() needs to keep `value` where it is; 0: the value cannot stay there.
  uint32_t value_slot = 0;
  uint64_t cas = 0;      // hit with kWantCas, stored
  uint64_t version = 0;  // hit: the item's internal version, for chunks; iterate: the next cursor
  // kNumber; stored with kWantMeta: the length of the value that the item has now; deleted: had; iterate: how many
  // records are lost
  uint64_t number = 0;
  // Of a hit, ttl of a kNumber too; with kWantMeta, else 0: a classic get is neither told of a token nor takes it.
  uint8_t marks = 0;  // ResultMarks
  // Never on the wire: units of work that the op took beyond the one that every op counts (rpc/slot_poller.h).
  uint16_t work = 0;
  uint32_t last_access = 0;  // seconds ago
  int64_t ttl = 0;           // seconds left; -1: for ever
  std::string_view value;    // hit; stats: rows (op/stats.h); iterate: records (op/records.h)
  // Of a hit: what comes after `value` of the item's bytes where they do not lie together, piece by piece. None off the
  // wire.
  std::span<const std::string_view> further;

  // Whether `value` alone is less than the whole.
  bool is_partial() const { return value.size() < total_length; }
};

// What a reader of logs wants to see.
const char* to_string(OpCode code);
const char* to_string(ResultCode code);

}  // namespace egret::op
