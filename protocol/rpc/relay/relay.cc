#include "rpc/relay/relay.h"

#include <algorithm>
#include <utility>

#include "wire/codec.h"

namespace egret::rpc::relay {

using op::Op;
using op::OpCode;
using op::ResultCode;

namespace {
constexpr int kRoundsOfPoll = 8;  // of the poller, before others have their turn
}  // namespace

// A session with a backend that inbound sessions are relayed to.
class Relay::Outbound final : private CreditWaiter {
 public:
  explicit Outbound(ClientSession& session) : session_(session), lanes_(session.lanes().count()) {}
  ~Outbound() {
    if (is_queued_) session_->credit().stop_waiting(this);
  }

  ClientSession& session() { return *session_; }
  // The generation of its lanes that inbound sessions were granted for, or a later one of the same backend.
  bool is_up() const { return session_->is_open() && session_->lanes().count() == lanes_.size(); }
  PinSeats& pins(uint32_t lane) { return lanes_[lane].pins; }

  // Messages for a lane that were put off. Newer ones are behind them.
  uint32_t waiting(uint32_t lane) const { return lanes_[lane].waiting; }
  void add_waiting(uint32_t lane) { ++lanes_[lane].waiting; }
  void remove_waiting(uint32_t lane) { --lanes_[lane].waiting; }
  // Whether a message that was put off should be tried again; `tried`: what its last try was told by wait().
  bool may_go_on(uint32_t lane, uint64_t tried) const { return tried != turn_ && !lanes_[lane].is_full; }
  // It found no credit, no room, or that it is another one's turn. It is tried again when something has become free. Where
  // the lane has credit, others are tried meanwhile: one of them may have what this one waits for.
  uint64_t wait(uint32_t lane) {
    lanes_[lane].is_full = !session_->lanes()[lane].has_credit();
    if (!std::exchange(is_queued_, true)) session_->credit().wait(this);
    return turn_;
  }

  uint32_t sessions = 0;  // inbound lanes

 private:
  void on_credit() override {
    is_queued_ = false;
    ++turn_;
    for (OutLane& lane : lanes_) lane.is_full = false;
  }

  const SessionAnchor session_;
  struct OutLane {
    uint32_t waiting = 0;
    bool is_full = false;
    PinSeats pins;
  };
  std::vector<OutLane> lanes_;
  bool is_queued_ = false;  // for credit
  uint64_t turn_ = 1;       // how often something has become free
};

struct Relay::Lane {
  Lane(InboundLane* lane, Outbound& to, uint32_t& next_upload_id, RelayMemory& memory, bool is_of_worker)
      : in(lane), out(to), uploads(to.session(), next_upload_id, memory, lane->binding().user, !is_of_worker) {}

  InboundLane* const in;  // deletes itself
  Outbound& out;
  InboundUploads uploads;
  bool is_waiting = false;  // its next message was put off
  uint64_t tried = 0;       // Outbound::wait()
};

Relay::Relay(const RelayOptions& options, const base::Clock& clock, uint32_t& next_upload_id)
    : clock_(clock),
      next_upload_id_(next_upload_id),
      kept_(options.kept_memory),
      collected_(options.collected_memory),
      poller_(options.polling, clock, *this) {}

Relay::~Relay() {
  for (LaneId id = 0; id < lanes_.size(); ++id) {
    if (lanes_[id] != nullptr) lane_dropped(id);
  }
}

Relay::Outbound& Relay::outbound_of(ClientSession& session) {
  std::unique_ptr<Outbound>& outbound = outbounds_[&session];
  if (outbound == nullptr) outbound = std::make_unique<Outbound>(session);
  return *outbound;
}

void Relay::attach(const Inbound& inbound) {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(inbound.outbound->is_open() && inbound.layout.lanes == inbound.outbound->lanes().count());
  attaching_ = &inbound;
  inbound.outbound->lanes().set_relayed();
  for (uint32_t lane = 0; lane < inbound.layout.lanes; ++lane) {
    poller_.attach({.session_id = inbound.session_id,
                    .lane = lane,
                    .endpoint = inbound.endpoint,
                    .layout = inbound.layout,
                    .seal = inbound.seal,
                    .rights = inbound.rules->rights,
                    .knows_rights = inbound.knows_rights,
                    .is_embedded = inbound.is_embedded,
                    .user = inbound.user});
  }
  attaching_ = nullptr;
}

void Relay::lane_attached(LaneId id, const LaneBinding& binding) {
  Outbound& out = outbound_of(*attaching_->outbound);
  ++out.sessions;
  if (lanes_.size() <= id) lanes_.resize(id + 1);
  auto* const in = new InboundLane({poller_, clock_, kept_, counters_}, id, binding, attaching_->rules,
                                   attaching_->outbound->counters());
  lanes_[id] = std::make_unique<Lane>(in, out, next_upload_id_, collected_, attaching_->is_of_worker);
}

void Relay::detach(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  poller_.detach(session_id);
}

void Relay::lane_dropped(LaneId id) {
  const std::unique_ptr<Lane> lane = std::move(lanes_[id]);
  Outbound& out = lane->out;
  if (lane->is_waiting) out.remove_waiting(lane->in->number());
  out.pins(lane->in->number()).leave(lane->in);
  lane->in->drop();
  if (--out.sessions > 0) return;
  // The uploads of the lane still need the session, which they hold themselves.
  const ClientSession* const session = &out.session();
  outbounds_.erase(session);
}

bool Relay::is_same(const wire::Grant& then, const wire::Grant& now) {
  return then.epoch == now.epoch && then.hash_seed == now.hash_seed && then.item_size_max == now.item_size_max &&
         then.layout.lanes == now.layout.lanes;
}

// --- taking

bool Relay::poll() {
  EGRET_ASSERT_OWNER(owner_);
  has_open_ |= kept_.used() > 0;
  int rounds = 0;
  while (rounds < kRoundsOfPoll && poller_.poll() > 0) ++rounds;
  return rounds > 0;
}

bool Relay::may_go_on(LaneId id) {
  const Lane& lane = *lanes_[id];
  is_going_on_ = lane.out.may_go_on(lane.in->number(), lane.tried);
  return is_going_on_;
}

size_t Relay::take(const TakenMessage& message, std::span<const Op> ops) {
  Lane& lane = *lanes_[message.lane];
  const uint32_t number = lane.in->number();
  const bool is_going_on = std::exchange(is_going_on_, false) && lane.is_waiting;
  if (!lane.in->begin(message, ops)) {
    if (std::exchange(lane.is_waiting, false)) lane.out.remove_waiting(number);
    return kMalformed;
  }
  size_t taken = 0;
  if (is_going_on || lane.out.waiting(number) == 0) {
    while (taken < ops.size() && pass_on(lane, ops[taken])) ++taken;
    if (taken < ops.size()) lane.tried = lane.out.wait(number);
  }
  const bool waits = taken < ops.size();
  if (waits && !lane.is_waiting) lane.out.add_waiting(number);
  if (!waits && lane.is_waiting) lane.out.remove_waiting(number);
  counters_.waits += waits;
  lane.is_waiting = waits;
  return taken;
}

// False: there is no credit for it, or no room.
bool Relay::pass_on(Lane& lane, const Op& op) {
  const ResultCode verdict = lane.in->rules().judge(op);
  if (verdict != ResultCode::kOk) {
    ++counters_.refused;
    lane.in->answer(op, verdict);
    return true;
  }
  if (op.code == OpCode::kChunk && (op.version & Remainders::kOurs) != 0) {
    lane.in->answer_piece(op);
    return true;
  }
  if (!lane.out.is_up()) {
    ++counters_.not_sent;
    lane.in->answer(op, ResultCode::kNotSent);
    return true;
  }
  return send_on(lane, op);
}

bool Relay::send_on(Lane& lane, const Op& op) {
  switch (op.code) {
    case OpCode::kUpload:
    case OpCode::kCommit:
    case OpCode::kAbort:
      return pass_on_value(lane, op);
    case OpCode::kSet:
    case OpCode::kAdmin:
      if (wire::fits_slot(lane.out.session().grant().layout, op)) return append(lane, op);
      return pass_on_value(lane, op);
    case OpCode::kGet:
      if ((op.options & op::kPin) != 0 && !lane.out.pins(lane.in->number()).take(lane.in, clock_.now_ns())) {
        Op without = op;
        without.options &= static_cast<uint16_t>(~op::kPin);
        return append(lane, without);
      }
      return append(lane, op);
    default:
      return append(lane, op);
  }
}

bool Relay::append(Lane& lane, const Op& op) {
  if (!lane.out.session().lanes()[lane.in->number()].append(op, lane.in)) return false;
  lane.in->expect(op);
  return true;
}

// An op that is one of the outbound session's own uploads, or becomes one.
bool Relay::pass_on_value(Lane& lane, const Op& op) {
  Lanes& lanes = lane.out.session().lanes();
  ResultCode code = ResultCode::kOk;
  Progress progress = Progress::kAnswer;
  if (op.code == OpCode::kAdmin) {
    code = ResultCode::kInvalid;  // longer than any that there is
  } else if (op::partition_of(lanes.hash(op.key), lanes.count()) != lane.in->number()) {
    code = ResultCode::kWrongPartition;
  } else if (op.code == OpCode::kUpload) {
    progress = lane.uploads.part(op, code);
    has_open_ = true;
  } else if (op.code == OpCode::kCommit) {
    progress = lane.uploads.commit(op, lane.in, code);
  } else if (op.code == OpCode::kAbort) {
    lane.uploads.abort(op);
  } else {
    progress = lane.uploads.store(op, lane.in, code);
  }
  if (progress == Progress::kAnswer) lane.in->answer(op, code);
  if (progress == Progress::kAwaited) lane.in->expect(op);
  return progress != Progress::kStalled;
}

// --- sleeping, time

bool Relay::park(bool all) {
  EGRET_ASSERT_OWNER(owner_);
  poller_.park(all);
  return poller_.awake_lanes() == 0;
}

void Relay::tick() {
  EGRET_ASSERT_OWNER(owner_);
  const uint64_t now_ns = clock_.now_ns();
  has_open_ = false;
  for (const auto& lane : lanes_) {
    if (lane == nullptr) continue;
    has_open_ |= lane->uploads.expire(now_ns);
    lane->in->remainders().expire(now_ns);
  }
  has_open_ |= kept_.used() > 0;
}

}  // namespace egret::rpc::relay
