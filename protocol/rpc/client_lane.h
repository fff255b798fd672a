// The client side of one lane: packs ops into messages, numbers them, keeps the window, and turns responses back into
// results.
//
//   gather(op, waiter) ─▶ GatheredOps ─▶ answer_gathered(): the store of this thread ─▶ waiter->on_result
//   append(op, waiter) ─▶ open message (encoded in its slot) ─ seal ─▶ staged write … flush of the session … server …
//   waiter->on_result ◀─ decode ◀─ whole and expected? ◀─ fetched or delivered bytes
//
// A lane is first in, first out: each waiter is called exactly once, in the order in which the ops were appended, with
// a result, kTimedOut, kSessionLost or kNotSent. A slot is reused only when its response has been seen and nobody holds it.
// Thread: the worker's. Memory: allocated when the session opens, and with the first op that is gathered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "op/loan.h"
#include "op/op.h"
#include "op/part_room.h"
#include "rpc/active/active_lanes.h"
#include "rpc/fetch_policy.h"
#include "rpc/gathered_ops.h"
#include "rpc/lane_counters.h"
#include "rpc/waiting/lane_sleep.h"
#include "transport/transport.h"
#include "wire/head.h"
#include "wire/slot.h"

namespace egret::rpc {

// Gets the result of an op. The waiter must stay alive until then.
class Waiter {
 public:
  // `result.value` is valid during the call only, or as long as it is held (ClientLane::hold). May append further ops.
  virtual void on_result(const op::Result& result) = 0;

 protected:
  ~Waiter() = default;
};

// The session's clock readings, which its lanes read: when this pass began, and when results were last taken in.
struct SessionTimes {
  const uint64_t& now_ns;
  const uint64_t& taken_ns;
};

// What all lanes of a session share. `endpoint`, `durations` (of messages) and `active` outlive them.
struct LaneContext {
  const wire::RegionLayout& layout;
  const wire::Seal seal;
  const FetchOptions& fetch;
  transport::ClientEndpoint& endpoint;
  const SessionTimes times;
  base::Histogram& durations;
  ActiveLanes& active;
  bool knows_deliver = false;  // wire::kDeliver was agreed
  bool is_relayed = false;     // wire::kRelayed was agreed
};

// The state of a lane, for the session and for tests.
struct LaneProgress {
  uint64_t answered;         // the oldest message without an answer; grows with every message answered
  uint64_t oldest_sent_ns;   // when that was sent; only while a message is outstanding
  bool is_silent;            // that message has timed out, and nothing was answered since
  uint64_t usual_wait_ns;    // running average of the time from sending a message to seeing its response
  bool has_open;             // ops are in the message that is still open, or gathered
  uint32_t reads_in_flight;  // staged, and not yet reported by on_fetched()
  FetchPolicy::Mode mode;
  bool is_asked;     // the oldest message without an answer has asked for a push itself
  bool awaits_push;  // its response is pushed in any case: to sleep costs nothing more, but for the wake-up
  bool holds_much;   // a quarter of the window's slots or more are held
  bool is_empty;     // no op waits for an answer, and no slot is held
  bool is_idle;  // a pass has nothing to do here: nothing is open, outstanding, being read, held or to be taken back
};

// The tag of a read tells which lane staged it; from the top: one bit (the rest of a response), the lane, the seq's low
// bits.
inline constexpr uint32_t kTagLaneShift = 48;
inline uint32_t lane_of_tag(uint64_t tag) {
  return static_cast<uint32_t>(tag >> kTagLaneShift) & 0x7fff;
}

class ClientLane {
 public:
  // `counters` outlive the lane, and may have counted for one before it.
  ClientLane(uint32_t lane, const LaneContext& context, LaneCounters& counters);

  // Encodes `op` into the open message; opens or seals messages as needed. 0: the window is used up; try again when
  // the lane has credit.
  // Returns how many bytes its result will probably take: values are taken to be as long as they were lately.
  size_t append(const op::Op& op, Waiter* waiter);
  // The op's result at once, if the lane's partition is this thread's, and nothing is under way in the lane (op/direct_store.h).
  // `result.value` is valid until the next call, or as long as `loan`. False: append() it.
  friend bool execute(ClientLane& lane, const op::Op& op, op::Result& result, op::LoanRef& loan);
  // Where execute() could be called, too: keeps the op until answer_gathered(), to be executed together with others. Returns what
  // append() does; 0: append() it.
  friend size_t gather(ClientLane& lane, const op::Op& op, Waiter* waiter);
  // Executes what was gathered, and calls the waiters. Call it before what was appended later is flushed. Returns whether any op
  // was executed.
  friend bool answer_gathered(ClientLane& lane);

  // Room in request slots for the values of the next ops, of which `op` is one without its value: at most `most` bytes, in at most
  // `messages` messages; the first piece has `least` or more. Then append() an op for each piece, in order, whose value is the
  // filled front of the piece, `least` bytes or more: it is not copied. Only the last may be filled in part, and none need be.
  // Meanwhile nothing else of the lane may be called. Adds nothing if not even the first piece can be had.
  friend void value_room(ClientLane& lane, const op::Op& op, uint32_t most, uint32_t least, uint32_t messages,
                         op::PartRoom& room);

  // Call it within Waiter::on_result, with its result: keeps the bytes of the value in their slot until release() of
  // the returned number. 0: they cannot be kept. The slot cannot be reused meanwhile, so only a caller that needs no
  // further credit may hold. When the session is lost, nothing is held any more.
  uint32_t hold(const op::Result& result);
  void release(uint32_t held);

  // A pass begins. Messages that append() sealed since the last flush count as sent now: they were given the time of the last
  // pass, which may be long ago. Over shm, where it costs one store, want is cleared: the worker is awake, and the server need
  // not push.
  void begin_pass();
  // Seals the open message, if there is one, and stages it: with what its response needs, for which want is staged in
  // reply mode where the backend cannot be asked with the request. The endpoint is flushed next.
  void seal() {
    seal_open();
    flushed_ = next_seq_;
  }

  // Stages at most `depth` reads: of sent messages that are due and have no read in flight, oldest first. Returns how
  // many. The endpoint is flushed next.
  uint32_t stage_fetches(uint32_t depth);
  // A staged read has completed. False: the response is malformed (the session is broken).
  bool on_fetched(uint64_t tag);
  // The server pushed. `bytes` as in transport::Event.
  bool on_delivered(std::span<const std::byte> bytes);
  // Stages want for everything outstanding, unless it is set already, or a push will come in any case. Returns whether it
  // did.
  bool stage_want();
  // Whether the next response will be pushed: its request has asked for it; or want covers it, and a read staged after
  // want has found nothing. Without that read, a response that was published before the server saw want would be waited
  // for in vain.
  bool will_be_delivered() const {
    return outstanding() == 0 || is_pushed_ || slot(oldest_).is_asked ||
           (wanted_ >= next_seq_ - 1 && found_absent_ == oldest_);
  }
  // On transports whose push is only a wake-up (shm): the server signalled. Responses up to `wanted_` that are found
  // from now on count as delivered (statistics only).
  void on_woken() { pushed_ = std::max(wanted_, was_wanted_); }

  // Messages sent and not answered. A message that timed out counts until its late response comes.
  uint32_t outstanding() const { return static_cast<uint32_t>(next_seq_ - oldest_); }
  bool has_credit() const { return next_seq_ - free_ < credit_; }
  // No further message is opened until withhold(false).
  void withhold(bool withheld) { credit_ = withheld ? 0 : layout_.window; }
  // Always inlined: a caller that reads one field pays for that one only.
  [[gnu::always_inline]] LaneProgress progress() const {
    return {.answered = oldest_,
            .oldest_sent_ns = slot(oldest_).sent_ns,
            .is_silent = (oldest_ < expired_),
            .usual_wait_ns = usual_wait_ns_,
            .has_open = (open_ops_ > 0 || has_gathered()),
            .reads_in_flight = reads_in_flight_,
            .mode = mode(),
            .is_asked = is_asked(),
            .awaits_push = is_asked() || (mode() == FetchPolicy::Mode::kReply && !knows_deliver_),
            .holds_much = held_slots_ * 4 >= layout_.window,
            .is_empty = free_ == next_seq_ && open_ops_ == 0 && !has_gathered(),
            .is_idle = is_idle()};
  }
  // Calls the waiters of messages sent before `before_ns` with kTimedOut; returns of how many messages. The slots stay in
  // use.
  uint32_t expire(uint64_t before_ns);
  // Messages that wait for an answer, and have not expired.
  uint32_t unanswered() const;
  // Calls every waiter with kSessionLost, or kNotSent where its message was still open; the lane is then empty and unusable.
  void fail_all();

  // Changes the options of waiting; learned values stay.
  void set_fetch(const FetchOptions& fetch);
  uint32_t number() const { return lane_; }

 private:
  friend class Lanes;

  // A slot's message: kFree → kOpen (being packed) → kSent → kFree. kAbandoned: sent, its waiters were told kTimedOut.
  // kHeld: answered, and its bytes are still held.
  enum class State : uint8_t { kFree, kOpen, kSent, kAbandoned, kHeld };
  struct Slot {
    State state = State::kFree;
    bool read_in_flight = false;
    bool arrived = false;     // its response is complete and waits for its turn
    bool is_asked = false;    // it has asked for a push, which will come: nothing is fetched
    bool after_want = false;  // the read in flight was staged after a want that covers this message
    uint16_t op_count = 0;
    uint16_t holds = 0;
    uint32_t refetches = 0;
    uint32_t read_bytes = 0;  // length of the read in flight
    uint64_t sent_ns = 0;
    uint64_t fetch_ns = 0;                 // do not fetch before
    uint64_t staged_ns = 0;                // when the read in flight was staged
    uint64_t vain_ns = 0;                  // time from sending to the last fetch that found nothing
    uint64_t pause_ns = 0;                 // before it was sent nothing was outstanding for so long; 0: something was
    const std::byte* pushed_at = nullptr;  // its response, if it was pushed; else that is in the response image
    Waiter** waiters = nullptr;            // one for each op; room for as many as fit
  };

  class GatheredResults;

  // How a message is sent where the backend can be asked with the request.
  struct Way {
    bool rings = false;     // it wakes the lane
    uint16_t flags = 0;     // wire::kPush, kTellAsleep
    uint64_t pause_ns = 0;  // Slot::pause_ns
  };

  uint64_t tag_of(uint64_t seq) const { return uint64_t{lane_} << kTagLaneShift | (seq & kSeqMask); }
  static constexpr uint64_t kSeqMask = (uint64_t{1} << kTagLaneShift) - 1;

  Slot& slot(uint64_t seq) { return slots_[layout_.slot_of(seq)]; }
  const Slot& slot(uint64_t seq) const { return slots_[layout_.slot_of(seq)]; }
  bool is_idle() const {
    const bool takes_back = wanted_ != 0 && endpoint_.limits().fetch_is_local;
    return open_ops_ == 0 && outstanding() == 0 && reads_in_flight_ == 0 && held_slots_ == 0 && !takes_back &&
           !has_gathered();
  }
  bool is_asked() const { return outstanding() > 0 && slot(oldest_).is_asked; }
  bool has_gathered() const { return gathered_ != nullptr && !gathered_->empty(); }
  // No message is under way in the lane, and no result is being handed out.
  bool is_free() const { return open_ops_ == 0 && outstanding() == 0 && has_credit() && !is_answering_; }
  bool begin_gathering();
  void fail_gathered();
  size_t expected_result(const op::Op& op, size_t least) const;
  // Whether an op fits the open message: it takes `size` bytes, its result `least`, and probably `expected`.
  bool fits_open(size_t size, size_t least, size_t expected) const {
    const size_t room = layout_.response_slot_size - sizeof(wire::ResponseHeader);
    const auto used = static_cast<size_t>(open_end_ - open_at_);
    return used + size <= layout_.request_slot_size && open_min_results_ + least <= room &&
           open_expected_results_ + expected <= room && open_ops_ < max_ops_;
  }
  bool open_message();
  Way choose_way();
  void stage_sealed(Slot& sealed, size_t length);
  void stage_read(Slot& target, uint64_t seq, size_t from, size_t length, uint64_t tag);
  void ring_if_asleep(const std::byte* header, uint64_t seq);
  void ring_for(uint64_t seq);
  void hear_of_sleep(const std::byte* header, uint64_t seq);
  void seal_open();
  void take_back_want();
  void look_if_asleep();
  bool on_pushed(uint64_t seq, std::span<const std::byte> bytes);
  bool take_arrived();
  bool finish(uint64_t seq, const std::byte* response);
  static void hand_out(const op::LoanName& lent, op::Result& result, Waiter* waiter);
  void answer_all(Slot& slot, op::ResultCode code);
  void free_slots();
  FetchPolicy::Mode mode() const { return is_pushed_ ? FetchPolicy::Mode::kReply : policy_.mode(); }
  uint32_t fetch_size() const { return std::min(policy_.fetch_size(), layout_.response_slot_size); }
  void learn(const Slot& done, const wire::Response& response);
  void learn_to_wait(const Slot& done, const wire::Response& response, uint64_t waited_ns);
  void show_mode();

  base::OwnerThread owner_;
  const uint32_t lane_;
  const wire::RegionLayout layout_;
  const wire::Seal seal_;
  transport::ClientEndpoint& endpoint_;
  const uint64_t& now_ns_;  // the session's, of this pass
  FetchPolicy policy_;
  FetchOptions fetch_;
  const bool is_pushed_;  // Limits::results_are_pushed: nothing is fetched, wanted or rung
  const bool knows_deliver_;
  const uint8_t known_hints_;
  const bool is_relayed_;
  std::unique_ptr<Slot[]> slots_;
  const uint32_t max_ops_;  // that fit a request slot
  const std::unique_ptr<Waiter*[]> waiters_;

  uint32_t held_slots_ = 0;
  uint64_t next_seq_ = 1;             // of the open message, or of the next one
  uint64_t flushed_ = 1;              // the first message that was not flushed yet
  uint64_t oldest_ = 1;               // not yet answered
  uint64_t expired_ = 0;              // behind the last message that has timed out
  uint64_t free_ = 1;                 // the slots of all messages before it may be reused
  uint32_t credit_ = layout_.window;  // messages that may be unanswered or held
  uint64_t wanted_ = 0;               // last value of want
  uint64_t was_wanted_ = 0;           // ... before it was taken back
  uint64_t pushed_ = 0;               // on shm: responses up to this one that are found now count as delivered
  uint64_t found_absent_ = 0;         // the oldest seq for which a read staged after want found nothing
  uint32_t reads_in_flight_ = 0;
  uint64_t usual_wait_ns_ = 0;
  uint64_t missed_ns_ = 0;  // when a fetch that found nothing was last reported to the policy
  uint64_t rung_for_ = 0;   // the seq for which the lane was rung last
  uint64_t rung_ns_ = 0;
  // Of a relayed lane: the oldest message for which it was not looked whether the server's lane sleeps, and the end of
  // those that the next flush will have published.
  uint64_t looked_ = 1, published_ = 1;
  bool slept_ = false;  // the server's lane was asleep when the last answered message was sent
  LaneSleep sleep_;
  bool is_told_of_sleep_ = false;  // the last message sent has asked to be: kTellAsleep
  uint64_t idle_since_ns_ = 0;     // when the last outstanding message was answered

  // The open message.
  uint32_t open_ops_ = 0;
  std::byte* open_at_ = nullptr;   // start of its slot
  std::byte* open_end_ = nullptr;  // end of what is encoded
  Waiter** open_waiters_ = nullptr;
  size_t open_min_results_ = 0;
  size_t open_expected_results_ = 0;

  // Ops that need no slot, and come before what is in slots: none is added while a message is open or unanswered.
  std::unique_ptr<GatheredOps> gathered_;  // null: no op was gathered yet
  bool is_answering_ = false;              // their waiters are being called

  LaneCounters& counters_;
  const uint64_t& taken_ns_;  // the session's, of when results were last taken in
  base::Histogram& durations_;
  ActiveLanes& active_;
};

bool execute(ClientLane& lane, const op::Op& op, op::Result& result, op::LoanRef& loan);
size_t gather(ClientLane& lane, const op::Op& op, Waiter* waiter);
bool answer_gathered(ClientLane& lane);
void value_room(ClientLane& lane, const op::Op& op, uint32_t most, uint32_t least, uint32_t messages,
                op::PartRoom& room);

}  // namespace egret::rpc
