// What was asked and answered of each key, and what may be read after that: the checker of a pool's simulation.
//
//   Request ─ begin() (its op is appended) ─ … ─ answer() (checked against all that is known by then) ─▶ failure()
//
// Every version of a value is written once: a value carries the number of the request that wrote it, a number that of
// the request that created it and how often it was added to. So a read says which version it saw.
//
// WHAT MAY BE READ. A *register* holds one version, or nothing. Its ops take effect one after the other, each at some
// moment between its append and its answer; those of one session's lane in the order of their appends. So a read must
// not return
//   - a version that nobody wrote for this key, or bytes that are not the version's (torn, another key's, another's);
//   - a version that was certainly replaced or removed before the read began;
//   - a miss, if there certainly was a version when the read began and nothing can have removed it since.
// An op that failed (op::has_no_answer) has no known end: it may have taken effect, or may still, until its session
// is over at the backend (end_session), or never.
//
// WHICH REGISTERS THERE ARE is the limit of what the pool promises (Registers):
//   kPerKey    one for each key, through whichever proxy. With the same members in all proxies and no failure.
//   kPerCopy   one for each key on each backend. While members differ between proxies or change, and while backends fail,
//              the pool promises no more than this: an op meets the copy of the backend that owns its key by the
//              membership in force at its proxy, and copies know nothing of one another. So today a key that moved away
//              and comes back may be read as it was before, and two proxies with different members may read different
//              versions. When failover and warm changes promise more, their scenarios check kPerKey.
//   kThroughProxy  one for each key, of which a proxy need know only what went through it. While others stand in for
//              owners, a key may be missed at any time, and what a proxy's clients have seen or were acknowledged binds
//              that proxy alone: no read through it returns a version that was certainly replaced or removed before one
//              that was written, removed or read through it earlier. Another proxy may return the older version until
//              it has learned of the change (on_look).
//   kPerFilledCopy  one for each copy, to which any version may come that another copy of the key had (a fill): a read
//              through one backend returns no version that was certainly replaced or removed before one that was
//              written, removed or read at that backend earlier. While values are brought to the owners of keys that
//              moved, and proxies learn of the move one after the other.
//   kPerOrigin  as kPerFilledCopy, and a version is bound by what replaced or removed it where it was written, through
//              whichever worker: while workers of one proxy learn of a move one after the other, and values are brought only
//              when all have. What the last of them writes at an owner before, when another has changed the key at the
//              present one, is the limit.
// Where values are brought, a miss says nothing about later reads, a delete does (allow_fills).
//
// Time is counted in events, so no two are simultaneous. Single-threaded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "op/op.h"

namespace egret::sim {

enum class Registers : uint8_t { kPerKey, kPerCopy, kThroughProxy, kPerFilledCopy, kPerOrigin };
enum class Kind : uint8_t { kGet, kSet, kAdd, kUpload, kDelete, kArith, kFlush };
const char* to_string(Kind kind);

// One request of a client. Lives as long as the history.
struct Request {
  uint64_t id = 0;
  Kind kind = Kind::kGet;
  uint32_t key = 0;           // its number; kFlush: none
  uint32_t value_length = 0;  // kSet, kAdd, kUpload
  bool moves = false;         // kUpload: its key may get another owner before it is stored
  uint32_t proxy = 0;         // through which it came
  uint32_t backend = 0;       // where its op went
  uint64_t session = 0;       // one of a ClientSession's sessions
  uint64_t place = 0;         // of its op in its lane
  uint64_t began = 0;         // when its op was appended; 0: none was
  uint64_t ended = 0;
  uint32_t answers = 0;
  std::vector<uint32_t> backends = {};  // kFlush: where it went
};

// The bytes that a request writes, and the flags.
std::string value_of(const Request& request);
uint32_t flags_of(const Request& request);
std::string key_text(uint32_t key);
// Keys of numbers are only added to, created and deleted.
bool is_number(uint32_t key);
uint64_t initial_of(const Request& request);

class History {
 public:
  History(Registers registers, uint32_t keys, uint32_t backends);

  Request& make(Kind kind, uint32_t key);
  // The op is on its way. Later in a lane is a greater `place`.
  void begin(Request& request, uint32_t backend, uint64_t session, uint64_t place);
  void begin_flush(Request& request, std::vector<uint32_t> backends);
  // Its result, with the whole value. `restarted`: a large value had to be asked for again, so it was read at any moment
  // until now. Fails when this cannot be.
  void answer(Request& request, const op::Result& result, bool restarted = false);

  // Nothing of the session will be executed any more.
  void end_session(uint64_t session);
  // The backend's process has ended, and has lost all its items if `is_empty`.
  void end_process(uint32_t backend, bool is_empty);

  // A key may be missed at any time (it has moved to a member that does not have it), but what was missed must not be
  // read again.
  void allow_misses() { may_miss_ = true; }
  // ... and what was missed may be read again, unless it was deleted.
  void allow_fills() { may_miss_ = may_return_ = true; }
  // kThroughProxy: the proxy knows all that was acknowledged to others before `since` (a now()).
  void on_look(uint32_t proxy, uint64_t since) { looked_[proxy] = since; }
  uint64_t now() const { return now_; }
  // From now on requests must not fail.
  void expect_service() { may_fail_ = false; }
  void allow_failures() { may_fail_ = true; }

  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }
  bool has_failed() const { return !failure_.empty(); }
  uint64_t answered() const { return answered_; }
  uint64_t failed() const { return failed_; }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  // What a register holds: nothing (writer 0), or what a request wrote, for numbers with so many additions since.
  struct Version {
    uint64_t writer = 0;
    uint64_t count = 0;
    auto operator<=>(const Version&) const = default;
  };
  // Something that took effect between two moments; done is kNever if that is not known.
  struct Span {
    uint64_t began = 0, done = kNever;
    uint64_t session = 0;          // 0: not comparable by place
    uint64_t place = 0, last = 0;  // in its lane, where it began and where it ended
    uint32_t backend = 0;
    uint32_t proxy = 0;
  };
  struct Sighting {  // the register was seen to hold this at some moment of the span
    Version version;
    Span span;
  };
  struct Register {
    std::map<Version, Span> writes;
    std::vector<Span> removals;  // that may have taken effect
    std::vector<Sighting> sightings;
    uint64_t additions = 0;  // requests that may have added to a number here
  };

  Register& at(uint32_t key, uint32_t backend);
  static bool is_before(const Span& one, const Span& other);
  // Whether what was seen was certainly seen before, by someone whose sight binds that one.
  bool binds(const Register& where, const Sighting& sighting, Version version, const Span& span) const;
  // The backend at which it was written; of nothing: at which it was removed.
  static uint32_t origin_of(const Register& where, Version version, uint32_t removed_at);
  Span span_of(const Request& request) const;
  void begin_effect(Request& request);
  void check_hit(Request& request, const op::Result& result, const Span& span);
  void check_number(Request& request, uint64_t number, const Span& span);
  void check_version(const Request& request, Version version, const Span& span);
  void check_absent(const Request& request, const Span& span);
  void check_present(const Request& request, const Span& span);
  void see(Register& where, Version version, const Span& span);
  void on_change(Request& request, op::ResultCode code, const Span& span);
  // Whether an upload removes copies of its key on any backend.
  bool has_copies(const Request& request) const { return registers_ == Registers::kPerCopy && request.moves; }
  void end_removals(const Request& request);
  void answer_flush(Request& request, op::ResultCode code);
  void complain(const Request& request, const std::string& what);
  std::string name(const Request& request) const;

  const Registers registers_;
  const uint32_t keys_;
  const uint32_t backends_;
  std::deque<Request> requests_;         // by id - 1
  std::vector<Register> register_;       // by key, then backend
  std::map<uint32_t, uint64_t> looked_;  // by proxy
  uint64_t now_ = 0;
  bool may_fail_ = false;
  bool may_miss_ = false;
  bool may_return_ = false;
  uint64_t answered_ = 0, failed_ = 0, hits_ = 0, misses_ = 0;
  std::string failure_;
};

}  // namespace egret::sim
