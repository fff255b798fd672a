// Ops and results: one key-value operation and its answer, independent of the client's dialect and of the transport.
// Ops are modelled on memcached's meta commands (protocol.txt, "Meta Commands"); the classic text and binary commands
// map to them. Plain values: views point into memory that the holder of the Op or Result owns.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace egret::op {

// Values are wire format: never renumber. A backend answers an unknown code by kUnsupported.
enum class OpCode : uint8_t {
  // Read. kTouch: also set a new exptime. kNoValue: answer metadata only. kCompareCas: leave the value out if the
  // item's CAS is `cas`.
  kGet = 1,
  kSet = 2,     // store `value` as `mode` says; with kCompareCas only if the item's CAS is `cas`
  kDelete = 3,  // with kCompareCas only if the item's CAS is `cas`; with kInvalidate, kTouch also sets a new exptime
  // Add `delta` to a decimal value (kDecrement: subtract it). kCreate: create a missing item with the value `initial`
  // and `vivify_exptime`. kTouch: set the exptime of an existing one.
  kArith = 4,
  kChunk = 5,  // `length` bytes from `offset` of the value whose internal version is `version`
  // One part of a value sent in parts: `value` goes to `offset` of upload `upload_id`, which has `length` bytes in all.
  kUpload = 6,
  kCommit = 7,  // make a finished upload visible: executed now as a kSet (mode, CAS)
  kAbort = 8,   // drop an upload
  kFlush = 9,   // hide all items that are stored before the delay `exptime` is over, by memcached's rule
  // The counters of group `group`, from row `version` on (kSizeClasses: from id `version` on), as many as fit.
  // total_length says how long all rows are.
  kStats = 10,
  // A page of records (op/records.h) of source `group`, from the cursor `version` on. The result's version is the next
  // cursor.
  kIterate = 11,
  kAdmin = 12,  // `group`: AdminVerb
  kPing = 13,
};

// Whether an op of this code has a key. An unknown code has none.
constexpr bool has_key(OpCode code) {
  return code >= OpCode::kGet && code <= OpCode::kAbort;
}

enum class SetMode : uint8_t {
  kSet = 0,
  kAdd = 1,
  kReplace = 2,
  kAppend = 3,
  kPrepend = 4,
  // As kAdd, with a value that another backend of the pool still had: only while AdminVerb::kWarm holds, and only if the
  // key was neither changed nor deleted since that began. Else kNotStored.
  kFill = 5,
};
inline constexpr uint8_t kSetModes = 6;

enum class AdminVerb : uint8_t {
  kResetStats = 1,
  kCheck = 2,  // for tests, in checked builds: check the whole store; the result's value says what is wrong
  // Set the memory limit of the whole backend to `value` bytes (a little-endian number of 8 bytes). kOutOfMemory: the
  // backend cannot have that limit.
  kMemoryLimit = 3,
  // For tests, if the backend allows it (else kUnsupported): advance the clock by which items expire by `value` seconds
  // (a number as for kMemoryLimit). kInvalid: that exceeds the last second in which an item can expire.
  kMoveClock = 4,
  // For `value` seconds from now (a number as for kMemoryLimit; 0: end it) the partition remembers which keys are
  // changed or deleted, and takes fills. Repeated, it prolongs that. kInvalid: more than kMostWarmSeconds.
  kWarm = 5,
  // The members of the pool that this backend belongs to change: `value` is a MemberChangeHead and a part of the members
  // before. The backend removes what it stored of keys that were not its own among those. kStored: the part is taken,
  // more are missing; kNoUpload: send all parts again; kNotStored: under way, ask again; kOk: done, or nothing to do;
  // kExists: it belongs to other members than those, and removes nothing; kInvalid: the bytes are none.
  kMember = 6,
};
inline constexpr uint64_t kMostWarmSeconds = 3600;

// The head of kMember's value, little-endian. A membership is known by the hash of its bytes (pool/membership_code.h);
// of all partitions of a backend it is the same.
struct MemberChangeHead {
  uint64_t from;    // the members before; 0: unknown, since a proxy starts with these: nothing is removed
  uint64_t to;      // the members now; not 0
  uint32_t length;  // bytes of the members before; 0: this backend was none of them, and everything is removed
  uint32_t offset;  // of the part that follows. No part: only a question
};
static_assert(sizeof(MemberChangeHead) == 24);
inline constexpr uint32_t kMostMembersLength = 1u << 19;

// Option bits, one namespace for all ops. All 16 are used: a new option shares a bit with one that the op cannot have
// (as kTouchFirst and kAsClassic do). Wire format.
enum OpOptions : uint16_t {
  kCompareCas = 1 << 0,  // set, delete, arith, commit: `cas` must match, else kExists
  kTouch = 1 << 1,       // get, arith, delete with kInvalidate: set the item's exptime to `exptime`
  kNoValue = 1 << 2,     // get: leave the value out
  kWantCas = 1 << 3,     // answer with the CAS
  kDecrement = 1 << 4,   // arith
  kTouchFirst = 1 << 4,  // [T before R] get with kTouch and kRecache: compare `recache_below` with the new exptime
  kCreate = 1 << 5,      // arith: create with `initial` and `vivify_exptime` when missing
  kPin = 1 << 6,         // get: keep this version for the chunks that follow; chunk: read the pinned version
  // Options of the meta commands (protocol.txt, "Meta Commands"; their flags in brackets).
  // [E] set, commit, arith, delete with kInvalidate or kDropValue, get with kVivify: the item's CAS becomes `new_cas`.
  kExplicitCas = 1 << 7,
  // [N] get; set and commit in mode append or prepend: create a missing item, empty, with `vivify_exptime`.
  kVivify = 1 << 8,
  kRecache = 1 << 9,  // [R] get: the first reader that finds less than `recache_below` seconds left wins
  // [I] delete: mark as stale instead. set, commit with kCompareCas: with an older CAS store, too, but as stale.
  kInvalidate = 1 << 10,
  kDropValue = 1 << 11,  // [x] delete: remove only value, client flags and exptime
  // [h l t] get, arith (ttl only): answer the state before this access. [s] set, commit: answer the value's length;
  // delete: the length of the deleted value.
  kWantMeta = 1 << 12,
  kPeek = 1 << 13,    // [me] get: change neither last access nor the fetched mark nor counters
  kNewTtl = 1 << 14,  // [T before t] get, arith, with kWantMeta: answer the ttl after this access
  kNoBump = 1 << 15,  // [u] get: not an access: last access, the fetched mark and recency stay
  // set, commit with kWantMeta: if the set is refused, keep the old item in the modes in which a classic command keeps
  // it. Without this option (an ms) a refused set removes the old item in every mode.
  kAsClassic = 1 << 15,
};

// A get with no other options than these changes nothing, so it may overtake an unfinished get of the same key.
inline constexpr uint16_t kReadOnlyGetOptions = kWantCas | kWantMeta | kPeek | kNoBump | kCompareCas;
// When a large value has to be fetched again, the first get has done what these options of it ask for.
inline constexpr uint16_t kFirstGetOptions = kVivify | kRecache | kExplicitCas | kCompareCas;

// Marks of an item, as a reader is told (Result::marks). Wire format.
enum ResultMarks : uint8_t {
  kFetched = 1 << 0,    // has been read before
  kStale = 1 << 1,      // [X] was invalidated
  kWon = 1 << 2,        // [W] this reader won: it should store the item anew
  kTokenSent = 1 << 3,  // [Z] another reader has won before
  kCreated = 1 << 4,    // [N] this op created the item; also with kNumber and, with kWantMeta, kStored
};

// One operation. Fields that its code does not use are ignored.
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
  uint64_t new_cas = 0;  // kExplicitCas; may be 0
  uint64_t delta = 0;
  uint64_t initial = 0;
  uint64_t version = 0;    // chunk: internal version; stats, iterate: cursor
  uint32_t upload_id = 0;  // upload, commit, abort: chosen by the client, unique on its lane among live uploads
  uint32_t offset = 0;     // chunk, upload
  uint32_t length = 0;     // chunk: bytes wanted; upload: the whole value's
  std::string_view key;    // 1..250 bytes, except for flush, stats, iterate, admin and ping, which have none
  std::string_view value;  // set: the value; upload: this part; admin: what the verb needs
  // The op is sent to a backend that stands in for the key's owner, which cannot be reached: the tag of that owner's
  // name. 0: it is not. Get, set, delete, arith, commit, flush; iterate with kChanged. It sees no item that was stored
  // before the last kEnterFailover of that owner, and what it changes is remembered for kChanged.
  uint64_t owner = 0;
  uint64_t hash = 0;  // not on the wire: hash_key(key); whoever routes or checks the op fills it in
};

inline constexpr uint32_t kMaxKeyLength = 250;
inline constexpr uint32_t kMaxValueLength = 128u << 20;

// Values are wire format: never renumber.
enum class ResultCode : uint8_t {
  kOk = 0,    // flush, admin, ping, stats, iterate, abort, an upload's part
  kHit = 1,   // get, chunk: the value (or what fits of it), flags, CAS
  kMiss = 2,  // get, delete, arith, set with kCompareCas: no such item
  kStored = 3,
  kNotStored = 4,  // add, replace, append, prepend, fill: the condition did not hold
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
  kForbidden = 16,  // the session has no right to it (op/rights.h); kUnsupported where the client does not know this
  // Never on the wire: rpc reports them when no result came.
  kSessionLost = 100,  // the session ended before the answer came: done once, or not at all
  kTimedOut = 101,     // not answered in time: done once, or not at all, perhaps later
  kNotSent = 102,      // the session ended before it was sent: not done
};

// Whether the code says that no answer came, and why.
constexpr bool has_no_answer(ResultCode code) {
  return code >= ResultCode::kSessionLost;
}

class LoanRef;

// The answer to one op. `value` points into its producer's memory (store or slot); it is valid until the producer is
// called again.
struct Result {
  ResultCode code = ResultCode::kInvalid;
  uint32_t client_flags = 0;  // hit
  uint32_t total_length = 0;  // hit, stats: the whole value's length; value.size() may be less
  // Never on the wire. ClientLane::hold() needs it to keep `value` in its response slot; 0: it cannot be kept there.
  uint32_t value_slot = 0;
  uint64_t cas = 0;      // hit with kWantCas, stored
  uint64_t version = 0;  // hit: the item's internal version, for chunks; iterate: the next cursor
  // kNumber: the number. With kWantMeta: kStored: the length of the item's value now; kDeleted: the length it had.
  // Iterate: how many records were lost.
  uint64_t number = 0;
  // Marks, last access and ttl: hit (ttl also kNumber) with kWantMeta, else 0. A classic get does not win.
  uint8_t marks = 0;  // ResultMarks
  // Never on the wire: units of work that the op took beyond the one that every op counts (rpc/slot_poller.h).
  uint16_t work = 0;
  uint32_t last_access = 0;  // seconds ago
  int64_t ttl = 0;           // seconds left; -1: for ever
  std::string_view value;    // hit; stats: rows (op/stats.h); iterate: records (op/records.h)
  // Hit: the further pieces of a value that is not contiguous, after `value`. Empty in a result that was decoded.
  std::span<const std::string_view> further;
  // Hit, of a backend in the same process: the whole value, whose first piece is `value`. Move it away to keep it (loan.h),
  // or go on as with a value of which `value` is a part. Null: it is not lent.
  LoanRef* loan = nullptr;

  // Whether `value` is only a part of the item's value.
  bool is_partial() const { return value.size() < total_length; }
};

// Names for logs.
const char* to_string(OpCode code);
const char* to_string(ResultCode code);

}  // namespace egret::op
