// The server's side of the slots: one SlotPoller per partition thread reads the next expected request slot of every
// awake lane, takes the request if it is there, has its ops executed, and publishes the results where the client
// fetches them.
//
//   request slot ─ copy ─▶ private copy ─ check, decode ─▶ ops ─▶ OpHandler (foresee … execute) ─▶ response slot
//                                                                     publish ─▶ asked with the request, or want? ─▶ deliver
//
// Where ops are not executed but passed on (relay/), an OpTaker takes them instead, and completes messages later:
//
//   … ─ check, decode ─▶ ops ─▶ OpTaker::take … results in the slot ─▶ complete: publish ─▶ push_completed: want? ─▶ deliver
//
// Fairness: work is counted in units, of which an op takes one and each KiB of its result another; a dear op says how
// much more (op::Result::work). A lane that has used kLaneWork units in a round has the rest of its messages
// executed later: every poll() serves all other lanes first, and then one of those that have something left. So no lane
// waits for more than about kLaneWork units of another lane between two of its own messages.
//
// Thread: the partition's, for everything. Memory: allocated when lanes are attached; poll() allocates nothing. A
// request of another process is copied once, and only the copy is checked and used; whatever a peer writes, at worst its
// own session ends. A client of the same process is trusted: its requests are checked and executed where they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "op/loan.h"
#include "op/op.h"
#include "op/rights.h"
#include "rpc/waiting/push_load.h"
#include "transport/transport.h"
#include "wire/codec.h"
#include "wire/slot.h"

namespace egret::rpc {

// Names a lane while it is attached. Small and dense; used again for another lane afterwards.
using LaneId = uint32_t;

// What a partition must know to serve one lane of one session.
struct LaneBinding {
  uint64_t session_id = 0;
  uint32_t lane = 0;                              // = the partition's number
  uint32_t home = 0;                              // the partition that owns the endpoint
  transport::ServerEndpoint* endpoint = nullptr;  // outlives the attachment
  wire::RegionLayout layout{};
  wire::Seal seal{};
  op::Rights rights = op::kAllRights;
  bool knows_rights = true;         // its client knows the result kForbidden
  bool is_embedded = false;         // wire::kEmbedded was agreed
  uint32_t user = 0;                // sessions with the same number are of one peer group; numbers are small
  bool knows_deliver = false;       // wire::kDeliver was agreed
  bool is_served_at_flush = false;  // by serve(), in its client's thread: it never sleeps, and nobody is woken for it
};

// Who executes ops. Called by the poller, in this order, for batches of up to kMaxBatch ops of one or more lanes.
class OpHandler {
 public:
  static constexpr size_t kMaxBatch = 32;
  virtual ~OpHandler() = default;
  virtual void begin_round() = 0;
  // The ops of the next batch, while the one before is still to be executed: what they need can be prefetched. Comes
  // once for each op, before prepare().
  virtual void foresee(std::span<op::Op> ops) = 0;
  // `lanes[i]` is the lane that `ops[i]` came by. The spans stay valid until the last execute() of the batch.
  virtual void prepare(std::span<op::Op> ops, std::span<const LaneId> lanes) = 0;
  virtual void locate() = 0;
  // In order, once for each op. The result's value is copied into the slot before the next call, unless
  // keep() is called for it.
  virtual op::Result execute(size_t index) = 0;
  // Of the op that was executed last: whether its value stays as it is where the result says that it is, until what
  // relay() hears of is sent. False: it is to be copied now.
  virtual bool keep(size_t /*index*/, const op::Result& /*result*/) { return false; }
  // Likewise, of a lane whose endpoint lends values: lends this one to its client. No loan: it is to be copied, or kept.
  virtual op::LoanName lend(size_t /*index*/, const op::Result& /*result*/) { return {}; }
  // A lane is served from now on, and until lane_dropped().
  virtual void lane_attached(LaneId /*lane*/, const LaneBinding& /*binding*/) {}
  virtual void lane_dropped(LaneId lane) = 0;
};

// A message whose ops are handed over.
struct TakenMessage {
  LaneId lane = 0;
  uint64_t seq = 0;
  uint16_t op_count = 0;  // of the whole message
  uint16_t first = 0;     // those before were taken already
  uint64_t begun_ns = 0;  // when its first op was taken up
};

// Who takes ops over, and has them answered later: SlotPoller::complete(). For lanes of clients on this host.
class OpTaker {
 public:
  virtual ~OpTaker() = default;
  // Takes ops from the front, and says how many. The rest is put off: it is handed over again when may_go_on(), and the
  // lane's later messages after it. The spans are valid during the call. What was taken has room in the response slot
  // for the smallest results, and for those of the rest. kMalformed: the rest is not what it was, so the session ends.
  static constexpr size_t kMalformed = SIZE_MAX;
  virtual size_t take(const TakenMessage& message, std::span<const op::Op> ops) = 0;
  // Of a lane whose message was put off; asked in the order in which they were.
  virtual bool may_go_on(LaneId lane) = 0;
  virtual void lane_attached(LaneId lane, const LaneBinding& binding) = 0;
  virtual void lane_dropped(LaneId lane) = 0;
};

// A message all of whose results are in its response slot.
struct CompletedMessage {
  uint64_t seq = 0;
  uint16_t op_count = 0;
  size_t end = 0;  // offset in the slot, of the results
  uint64_t begun_ns = 0;
};

// Takes deliveries of endpoints that another partition owns, on transports where only the owner may push; and all where
// every result is pushed, so that those of a round go out at once.
class DeliveryRelay {
 public:
  virtual ~DeliveryRelay() = default;
  // `pieces`: as for ServerEndpoint::deliver_pieces(); there are none unless sends_pieces().
  virtual void relay(const LaneBinding& lane, size_t offset, size_t length,
                     std::span<const transport::Piece> pieces) = 0;
  // Whether what this lane is sent now may have pieces, which stay until they are sent (OpHandler::keep()).
  virtual bool sends_pieces(const LaneBinding& /*lane*/) const { return false; }
};

struct PollerOptions {
  uint32_t partition = 0;
  uint64_t lane_idle_ns = 1'000'000;      // a lane without a request for this long falls asleep
  uint64_t far_lane_idle_ns = 1'000'000;  // the same for clients on other hosts, which share no CPU with this process
  uint64_t embedded_idle_ns = 1'000'000;  // the same for programs on this host, which wait for their results themselves
  uint64_t torn_limit_ns = 1'000'000'000;  // a request whose checksum is wrong for longer ends its session
  PushRules push = {};
};

// Plain counters, owned by the partition's thread.
struct PollerCounters {
  uint64_t messages = 0;
  uint64_t ops = 0;
  uint64_t torn = 0;       // times that a request's checksum did not match
  uint64_t malformed = 0;  // requests that ended their session
  uint64_t deliveries = 0;
  uint64_t asked = 0;    // messages that asked for a push themselves
  uint64_t told = 0;     // lanes that fell asleep, and whose client was told so
  uint64_t put_off = 0;  // times that a message, or its rest, waited for others' because its lane had used its work
  uint64_t naps = 0;     // lanes that fell asleep
  uint64_t rings = 0;
};

// A session that must end because of what its peer wrote into a request slot of `lane`.
struct BrokenSession {
  uint64_t session_id = 0;
  uint32_t lane = 0;
  wire::DecodeError why = wire::DecodeError::kNone;

  bool operator==(const BrokenSession&) const = default;
};

class SlotPoller {
 public:
  // What a lane may use of one round before the others have their turn; as much as the ops of the messages that one
  // round takes of a lane, if all of them are small gets (about 0.1 ms).
  static constexpr uint32_t kLaneWork = 1024;
  static constexpr size_t kBytesPerWork = 1024;  // of a result that count as one unit
  // A value of at least so many bytes is sent from the handler's memory instead of being copied into the slot, where the
  // transport can do that. A pin has a fixed cost, a copy one by the byte; where they are equal was not measured.
  static constexpr size_t kLeastKept = 16384;

  SlotPoller(const PollerOptions& options, const base::Clock& clock, OpHandler& handler, DeliveryRelay& relay);
  // Of whoever takes ops, to answer them later.
  SlotPoller(const PollerOptions& options, const base::Clock& clock, OpTaker& taker);
  ~SlotPoller();

  // A lane starts awake, expecting seq 1.
  LaneId attach(const LaneBinding& binding);
  // Afterwards nothing of the session's memory is touched any more.
  void detach(uint64_t session_id);

  // One round: gather, execute, publish, push; and a second one for a lane that has work left over, if there is any.
  // Returns the number of messages worked on.
  size_t poll();
  // Its client has flushed: serves the requests of a lane that is served at the flush, as many as a lane may use of a
  // round; the rest is poll()'s. Returns the number of messages worked on.
  size_t serve(LaneId id);
  // Of those that were taken: publishes a response. A lane's messages are completed in their order.
  void complete(LaneId id, const CompletedMessage& message);
  // Wakes the clients that wait for what was completed since the last call.
  void push_completed();
  // Puts lanes that have been idle long enough (all lanes, if `all`) to sleep: writes asleep (unless results are pushed),
  // fences, reads the request slot once more. If awake_lanes() is 0 afterwards, the caller may block.
  void park(bool all = false);
  // The same for lanes that have been idle for a millisecond at least: for a thread that is always busy, polling them
  // costs more than their next ring.
  void park_long_idle();
  // The same for lanes of sessions whose requests ring by themselves, however short they have been idle.
  void park_pushed();
  // Changes the idle times of PollerOptions, and when pushing is cheap.
  void set_rules(uint64_t lane_idle_ns, uint64_t far_lane_idle_ns, uint64_t embedded_idle_ns, const PushRules& push) {
    options_.lane_idle_ns = lane_idle_ns;
    options_.far_lane_idle_ns = far_lane_idle_ns;
    options_.embedded_idle_ns = embedded_idle_ns;
    push_load_.set_rules(push);
  }
  // The session's client has rung: wakes its lane.
  void ring(uint64_t session_id);

  // Lanes that wait for poll(): those that are polled, and those served at the flush that have something left over. Where
  // ops are taken: without those whose messages were put off, which wait for their taker alone.
  size_t awake_lanes() const {
    const size_t put_off = taker_ != nullptr ? behind_.size() : 0;
    return awake_.size() + (at_flush_.empty() ? 0 : behind_at_flush()) - put_off;
  }
  // Where ops are taken: whether a lane is polled whose client has all its answers, and so may ask again.
  bool awaits_requests() const;
  // Whether all awake lanes are of clients on this host, whose rings cost little.
  bool is_awake_for_local_only() const;
  // The CPU that the clients of all awake lanes say they run on; -1: several, unknown, or no lane is awake.
  int clients_cpu() const;
  const PollerCounters& counters() const { return counters_; }
  bool pushing_is_cheap() const { return push_load_.is_cheap(); }
  // Sessions that broke since the last call; the control thread is to close them. One whose lanes break one after the
  // other is named several times.
  bool has_broken_sessions() const { return !broken_sessions_.empty(); }
  std::vector<BrokenSession> take_broken_sessions();

 private:
  struct Lane;
  struct Message;
  struct Attached {
    uint64_t session_id;
    LaneId id;
  };
  struct Awake {
    const std::byte* request;  // the slot where `expected` will appear
    uint64_t expected;
    LaneId id;
    bool is_behind;  // its lane is in behind_: only serve_behind() takes its messages
  };

  std::span<const Attached> lanes_of(uint64_t session_id) const;
  void park_idle(uint64_t idle_ns, uint64_t far_idle_ns, uint64_t embedded_idle_ns);
  SlotPoller(const PollerOptions& options, const base::Clock& clock, OpHandler* handler, DeliveryRelay* relay,
             OpTaker* taker);
  void serve_round(bool is_at_flush = false);
  void hand_over();
  size_t hand_over(const Message& message, std::span<const op::Op> ops);
  size_t next_behind() const;
  void serve_behind();
  void gather();
  void take_messages(Awake& awake, uint64_t now_ns);
  bool is_still(const LaneBinding& binding) const;
  bool take_message(Awake& awake, uint64_t now_ns);
  wire::DecodeError decode_ops(const Lane& lane, Message& message);
  bool decode_request(Lane& lane, Message& message);
  void execute_batches();
  std::span<op::Op> batch_from(size_t first);
  void execute_batch(size_t first);
  bool values_follow(size_t position) const;
  std::byte* write_result(Message& message, size_t first, size_t index, const op::Op& op, const op::Result& result);
  std::byte* write_long_result(Message& message, size_t index, const op::Op& op, const op::Result& result, size_t room);
  void put_off_rest();
  void put_off(const Message& message);
  Awake* find_awake(LaneId id);
  void drop(const Awake& awake);
  size_t behind_at_flush() const;
  void publish(bool is_at_flush);
  uint8_t hints_of(Lane& lane) const;
  void push();
  bool is_wanted(const Message& message, const LaneBinding& binding) const;
  void deliver(const LaneBinding& binding, size_t offset, size_t length);
  void tell_asleep(const LaneBinding& binding, uint64_t expected);
  void note_torn(Lane& lane, uint64_t now_ns);
  void break_session(Lane& lane, wire::DecodeError why);
  void wake(LaneId id);
  void remove_awake(size_t position);
  bool look_at(Awake& awake, uint64_t& now_ns);

  PollerOptions options_;
  const base::Clock& clock_;
  OpHandler* const handler_;  // null if there is a taker
  DeliveryRelay* const relay_;
  OpTaker* const taker_;
  base::OwnerThread owner_;

  std::vector<std::unique_ptr<Lane>> lanes_;  // by LaneId; null where free
  std::vector<Attached> attached_;            // by session
  std::vector<Awake> awake_;                  // dense: what gather() walks
  size_t next_awake_ = 0;                     // where the next round starts, so that no lane starves
  std::vector<Awake> at_flush_;               // lanes that are served at their client's flush
  std::vector<LaneId> behind_;                // lanes with a message that is executed in part; the first is served next

  // One round's messages and ops. Fixed capacity.
  std::vector<Message> messages_;
  size_t message_count_ = 0;
  size_t unfinished_count_ = 0;  // of them, those that have used up their lane's work
  std::vector<op::Op> ops_;
  std::vector<LaneId> op_lanes_;
  std::vector<uint32_t> op_messages_;
  size_t op_count_ = 0;

  struct Completed {
    LaneId lane;
    uint64_t seq;
    size_t length;
  };
  std::vector<Completed> completed_;  // since push_completed()

  uint64_t round_began_ns_ = 0;
  PushLoad push_load_;
  size_t far_sessions_ = 0;  // over a network

  std::vector<BrokenSession> broken_sessions_;
  PollerCounters counters_;
};

}  // namespace egret::rpc
