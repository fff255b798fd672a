#include "rpc/slot_poller.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/cpu.h"
#include "base/slot_copy.h"
#include "rpc/result_room.h"
#include "wire/head.h"

namespace egret::rpc {

using base::observe_word;
using base::publish_word;
using wire::RequestHeader;
using wire::ResponseHeader;

namespace {
constexpr size_t kMaxRoundMessages = 16;
constexpr size_t kMaxLaneMessages = 4;  // of one lane in one round: with more, the first of them would wait too long
constexpr uint64_t kLongIdleNs = 1'000'000;
// Prefetch distance for writing: the lines of the response slot are in the client's cache.
constexpr size_t kWriteAhead = 4 * 64;
constexpr size_t kMaxRoundOps = kMaxRoundMessages * wire::kMaxOpsPerMessage;
constexpr size_t kMaxPieces = 32;  // of a response
}  // namespace

// A lane on the server. Awake: in awake_, polled. Asleep: says so in the response slot of `expected`; not polled until
// it is rung. Broken: never polled again; the control thread closes the session.
struct SlotPoller::Lane {
  enum class State : uint8_t { kAwake, kAsleep, kBroken };
  LaneBinding binding;
  State state = State::kAwake;
  uint64_t expected = 1;
  uint64_t last_progress_ns = 0;
  uint64_t torn_since_ns = 0;  // 0: the slot is not torn
  bool tells_asleep = false;   // its client asked to be told when the lane falls asleep
  bool slept = false;          // it was asleep when the next message came
  // Of the message `expected`, if the lane is in behind_. Its request is read and checked anew in each round: all that
  // is believed of it is what has been executed and where the results end.
  uint32_t executed_ops = 0;
  size_t results_end = sizeof(ResponseHeader);  // offset in the response slot
  uint64_t begun_ns = 0;
  uint64_t completed = 0;  // where ops are taken: the last seq that was answered

  const std::byte* request_slot() const {
    return binding.endpoint->request_memory() + binding.layout.request_offset(binding.lane, expected);
  }
};

// A request being served. `copy` has room for the largest slot.
struct SlotPoller::Message {
  LaneId lane = 0;
  uint64_t seq = 0;
  wire::Request request;          // its body is in `copy`, or in the slot
  size_t reserved = 0;            // least bytes of the results still to come
  std::byte* response = nullptr;  // the slot
  std::byte* limit = nullptr;     // its end
  std::byte* end = nullptr;       // of the results written so far
  size_t response_offset = 0;
  uint32_t executed = 0;        // ops
  size_t end_offset = 0;        // in the response slot, of the results that earlier rounds have written
  size_t first_of_lane = 0;     // index of this round's first message of the same lane, which counts the lane's work
  uint32_t lane_work = 0;       // units, in the first message of its lane alone
  uint64_t begun_ns = 0;        // when its first op was taken up
  std::vector<std::byte> copy;  // of the request
  size_t piece_count = 0;
  std::array<transport::Piece, kMaxPieces> pieces;  // of the response: bytes that are not in the slot

  std::span<const transport::Piece> kept() const { return std::span(pieces).first(piece_count); }
  bool is_finished() const { return executed == request.op_count; }
};

SlotPoller::SlotPoller(const PollerOptions& options, const base::Clock& clock, OpHandler& handler, DeliveryRelay& relay)
    : SlotPoller(options, clock, &handler, &relay, nullptr) {}

SlotPoller::SlotPoller(const PollerOptions& options, const base::Clock& clock, OpTaker& taker)
    : SlotPoller(options, clock, nullptr, nullptr, &taker) {}

SlotPoller::SlotPoller(const PollerOptions& options, const base::Clock& clock, OpHandler* handler, DeliveryRelay* relay,
                       OpTaker* taker)
    : options_(options), clock_(clock), handler_(handler), relay_(relay), taker_(taker) {
  push_load_.set_rules(options.push);
  messages_.resize(kMaxRoundMessages);
  ops_.resize(kMaxRoundOps);
  op_lanes_.resize(kMaxRoundOps);
  op_messages_.resize(kMaxRoundOps);
}

SlotPoller::~SlotPoller() = default;

LaneId SlotPoller::attach(const LaneBinding& binding) {
  EGRET_ASSERT_OWNER(owner_);
  for (Message& message : messages_) {
    if (is_still(binding)) break;
    if (message.copy.size() < binding.layout.request_slot_size) message.copy.resize(binding.layout.request_slot_size);
  }
  auto lane = std::make_unique<Lane>();
  lane->binding = binding;
  lane->state = Lane::State::kAsleep;
  const auto free = std::ranges::find_if(lanes_, [](const auto& held) { return held == nullptr; });
  const auto id = static_cast<LaneId>(free - lanes_.begin());
  if (free == lanes_.end()) lanes_.emplace_back();
  lanes_[id] = std::move(lane);
  attached_.insert(std::ranges::upper_bound(attached_, binding.session_id, {}, &Attached::session_id),
                   {binding.session_id, id});
  awake_.reserve(lanes_.size());
  behind_.reserve(lanes_.size());
  broken_sessions_.reserve(lanes_.size());
  if (!binding.endpoint->limits().fetch_is_local && far_sessions_++ == 0) push_load_.begin(clock_.now_ns());
  if (taker_ != nullptr) {
    EGRET_DCHECK(binding.endpoint->limits().deliver_is_wakeup);
    taker_->lane_attached(id, binding);
  } else {
    handler_->lane_attached(id, binding);
  }
  if (binding.is_served_at_flush) {
    lanes_[id]->state = Lane::State::kAwake;
    at_flush_.push_back({lanes_[id]->request_slot(), lanes_[id]->expected, id, false});
  } else {
    wake(id);
    lanes_[id]->slept = false;
  }
  return id;
}

void SlotPoller::detach(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  const auto all_gone = lanes_of(session_id);
  for (const Attached& gone : all_gone) {
    if (const Awake* const awake = find_awake(gone.id); awake != nullptr) drop(*awake);
    std::erase(behind_, gone.id);
    if (!lanes_[gone.id]->binding.endpoint->limits().fetch_is_local) --far_sessions_;
    if (taker_ != nullptr) {
      std::erase_if(completed_, [&](const Completed& each) { return each.lane == gone.id; });
      taker_->lane_dropped(gone.id);
    } else {
      handler_->lane_dropped(gone.id);
    }
    lanes_[gone.id].reset();
  }
  const auto first = attached_.begin() + (all_gone.data() - attached_.data());
  attached_.erase(first, first + static_cast<ptrdiff_t>(all_gone.size()));
}

std::span<const SlotPoller::Attached> SlotPoller::lanes_of(uint64_t session_id) const {
  const auto first = std::ranges::lower_bound(attached_, session_id, {}, &Attached::session_id);
  return {first, std::ranges::upper_bound(attached_, session_id, {}, &Attached::session_id)};
}

size_t SlotPoller::poll() {
  EGRET_ASSERT_OWNER(owner_);
  const bool is_one_behind = !behind_.empty();  // since an earlier round: whoever falls behind in this one waits
  message_count_ = 0;
  op_count_ = 0;
  gather();
  const size_t first_count = message_count_;
  if (first_count > 0) serve_round();
  if (!is_one_behind) return first_count;
  serve_behind();
  return first_count + message_count_;
}

void SlotPoller::serve_round(bool is_at_flush) {
  if (taker_ != nullptr) {
    hand_over();
    return put_off_rest();
  }
  execute_batches();
  put_off_rest();
  publish(is_at_flush);
  push();
}

// Hands the round's ops over, message by message. Behind one that is not taken whole, its lane's others wait.
void SlotPoller::hand_over() {
  size_t at = 0;
  for (Message& message : std::span(messages_).first(message_count_)) {
    const auto ops = std::span<const op::Op>(ops_).subspan(at, message.request.op_count - message.executed);
    at += ops.size();
    uint32_t& lane_work = messages_[message.first_of_lane].lane_work;
    if (lane_work >= kLaneWork) continue;
    const size_t count = hand_over(message, ops);
    for (const op::Op& op : ops.first(count)) message.end += wire::min_result_size(op);
    message.executed += static_cast<uint32_t>(count);
    if (!message.is_finished()) lane_work = kLaneWork;
  }
}

size_t SlotPoller::hand_over(const Message& message, std::span<const op::Op> ops) {
  const size_t count = taker_->take({.lane = message.lane,
                                     .seq = message.seq,
                                     .op_count = message.request.op_count,
                                     .first = static_cast<uint16_t>(message.executed),
                                     .begun_ns = message.begun_ns},
                                    ops);
  if (count != OpTaker::kMalformed) return count;
  break_session(*lanes_[message.lane], wire::DecodeError::kNoRoom);
  remove_awake(static_cast<size_t>(find_awake(message.lane) - awake_.data()));
  return 0;
}

// The lane that has waited longest, and may go on.
size_t SlotPoller::next_behind() const {
  if (taker_ == nullptr) return 0;
  return static_cast<size_t>(std::ranges::find_if(behind_, [&](LaneId id) { return taker_->may_go_on(id); }) -
                             behind_.begin());
}

// A round of its own for the lane that has waited longest since its messages took more than their share.
void SlotPoller::serve_behind() {
  message_count_ = 0;
  op_count_ = 0;
  const size_t next = next_behind();
  if (next == behind_.size()) return;
  const LaneId id = behind_[next];
  behind_.erase(behind_.begin() + static_cast<ptrdiff_t>(next));
  Awake* const awake = find_awake(id);
  EGRET_DCHECK(awake != nullptr && awake->is_behind);
  const uint64_t now_ns = round_began_ns_ = clock_.now_ns();
  if (handler_ != nullptr) handler_->begin_round();
  if (observe_word(awake->request) == awake->expected) {
    take_messages(*awake, now_ns);
  } else {
    note_torn(*lanes_[id], now_ns);
  }
  // A message that was whole once, and is not answered, stays whole.
  if (taker_ != nullptr && message_count_ == 0 && lanes_[id]->state != Lane::State::kBroken) {
    break_session(*lanes_[id], wire::DecodeError::kTorn);
  }
  if (lanes_[id]->state == Lane::State::kBroken) {
    drop(*awake);
  } else if (message_count_ == 0) {
    behind_.push_back(id);  // torn: its peer writes to a request that we have begun to execute
  } else {
    awake->is_behind = false;  // put_off() says if it still is
  }
  if (message_count_ > 0) serve_round();
}

SlotPoller::Awake* SlotPoller::find_awake(LaneId id) {
  for (std::vector<Awake>* const lanes : {&at_flush_, &awake_}) {
    const auto at = std::ranges::find(*lanes, id, &Awake::id);
    if (at != lanes->end()) return &*at;
  }
  return nullptr;
}

// An entry of at_flush_ or awake_.
void SlotPoller::drop(const Awake& awake) {
  if (lanes_[awake.id]->binding.is_served_at_flush) {
    at_flush_.erase(at_flush_.begin() + (&awake - at_flush_.data()));
  } else {
    remove_awake(static_cast<size_t>(&awake - awake_.data()));
  }
}

size_t SlotPoller::behind_at_flush() const {
  return static_cast<size_t>(std::ranges::count_if(at_flush_, &Awake::is_behind));
}

size_t SlotPoller::serve(LaneId id) {
  EGRET_ASSERT_OWNER(owner_);
  size_t served = 0;
  for (uint32_t work = 0; work < kLaneWork;) {
    Awake* const awake = find_awake(id);
    uint64_t now_ns = 0;
    message_count_ = 0;
    op_count_ = 0;
    if (awake == nullptr || !look_at(*awake, now_ns)) break;
    if (message_count_ == 0) break;
    serve_round(true);
    served += message_count_;
    work += messages_[0].lane_work;
  }
  return served;
}

// Takes a lane's messages. False: it is broken, and no longer there.
bool SlotPoller::look_at(Awake& awake, uint64_t& now_ns) {
  if (observe_word(awake.request) != awake.expected || awake.is_behind) return true;
  if (now_ns == 0) {
    now_ns = round_began_ns_ = clock_.now_ns();
    if (handler_ != nullptr) handler_->begin_round();
  }
  take_messages(awake, now_ns);
  if (lanes_[awake.id]->state != Lane::State::kBroken) return true;
  drop(awake);
  return false;
}

// Reads each awake lane's request slot once, beginning where the last round stopped, until the round is full. Those that
// are served at the flush are few, and usually have been.
void SlotPoller::gather() {
  uint64_t now_ns = 0;  // read when the first message is found
  for (size_t i = 0; i < at_flush_.size() && message_count_ < kMaxRoundMessages;) {
    if (look_at(at_flush_[i], now_ns)) ++i;
  }
  const size_t lanes = awake_.size();
  for (size_t looked = 0; looked < lanes && message_count_ < kMaxRoundMessages; ++looked) {
    if (next_awake_ >= awake_.size()) next_awake_ = 0;
    if (look_at(awake_[next_awake_], now_ns)) ++next_awake_;
  }
}

void SlotPoller::take_messages(Awake& awake, uint64_t now_ns) {
  const size_t first_of_lane = message_count_;
  for (size_t taken = 0; taken < kMaxLaneMessages && message_count_ < kMaxRoundMessages; ++taken) {
    if (observe_word(awake.request) != awake.expected || !take_message(awake, now_ns)) return;
    messages_[message_count_ - 1].first_of_lane = first_of_lane;
  }
}

// Whether nobody changes a request while a round lasts: it is read in its slot.
bool SlotPoller::is_still(const LaneBinding& binding) const {
  const transport::Limits& limits = binding.endpoint->limits();
  return limits.is_one_process || (limits.is_received_by_poll && binding.home == options_.partition);
}

// True when a whole, well-formed message was taken: then it will be answered in this round.
bool SlotPoller::take_message(Awake& awake, uint64_t now_ns) {
  Lane& lane = *lanes_[awake.id];
  Message& message = messages_[message_count_];
  message.lane = awake.id;
  message.seq = awake.expected;
  const wire::RegionLayout& layout = lane.binding.layout;
  if (taker_ != nullptr && lane.expected - lane.completed > layout.window) {
    break_session(lane, wire::DecodeError::kTooMany);
    return false;
  }
  const wire::Seal& seal = lane.binding.seal;
  const bool is_whole =
      is_still(lane.binding)
          ? wire::view_request(awake.request, layout.request_slot_size, seal, awake.expected, message.request)
          : wire::read_request(awake.request, layout.request_slot_size, seal, awake.expected, message.copy.data(),
                               message.request);
  if (!is_whole) {
    note_torn(lane, now_ns);
    return false;
  }
  lane.torn_since_ns = 0;
  message.executed = std::exchange(lane.executed_ops, 0);
  message.end_offset = std::exchange(lane.results_end, sizeof(ResponseHeader));
  message.begun_ns = message.executed > 0 ? lane.begun_ns : now_ns;
  message.lane_work = 0;
  message.piece_count = 0;
  if (!decode_request(lane, message)) return false;
  message.response_offset = layout.response_offset(lane.binding.lane, message.seq);
  message.response = lane.binding.endpoint->response_memory() + message.response_offset;
  message.limit = message.response + layout.response_slot_size;
  message.end = message.response + message.end_offset;
  ++message_count_;
  op_count_ += message.request.op_count - message.executed;
  ++lane.expected;
  lane.tells_asleep = (message.request.flags & wire::kTellAsleep) != 0;
  lane.last_progress_ns = now_ns;
  awake.expected = lane.expected;
  awake.request = lane.request_slot();
  return true;
}

// Decodes the ops of a whole request behind those of this round, without those that are executed already.
wire::DecodeError SlotPoller::decode_ops(const Lane& lane, Message& message) {
  using wire::DecodeError;
  const wire::Request& request = message.request;
  const uint16_t known_flags = lane.binding.knows_deliver ? wire::kRequestFlags : 0;
  if ((request.flags & ~known_flags) != 0) return DecodeError::kReserved;
  if (request.op_count == 0 || request.op_count > wire::kMaxOpsPerMessage) return DecodeError::kBadCount;
  if (request.op_count <= message.executed) return DecodeError::kBadCount;
  const auto ops = std::span(ops_).subspan(op_count_, request.op_count);
  const DecodeError error = wire::decode_ops(request.body, request.length, ops);
  if (error != DecodeError::kNone) return error;
  if (message.executed > 0) std::copy(ops.begin() + message.executed, ops.end(), ops.begin());
  message.reserved = 0;
  for (const op::Op& op : ops.first(ops.size() - message.executed)) message.reserved += wire::min_result_size(op);
  const size_t room = lane.binding.layout.response_slot_size - message.end_offset;
  return message.reserved > room ? DecodeError::kNoRoom : DecodeError::kNone;
}

// False: the request makes no sense, so its client is broken or hostile, and the session ends.
bool SlotPoller::decode_request(Lane& lane, Message& message) {
  const wire::DecodeError error = decode_ops(lane, message);
  if (error != wire::DecodeError::kNone) {
    break_session(lane, error);
    return false;
  }
  for (size_t i = 0; i < message.request.op_count - message.executed; ++i) {
    op_lanes_[op_count_ + i] = message.lane;
    op_messages_[op_count_ + i] = static_cast<uint32_t>(message_count_);
  }
  return true;
}

// Empty behind the last one.
std::span<op::Op> SlotPoller::batch_from(size_t first) {
  return std::span(ops_).subspan(first, std::min(OpHandler::kMaxBatch, op_count_ - std::min(first, op_count_)));
}

void SlotPoller::execute_batches() {
  handler_->foresee(batch_from(0));
  for (size_t first = 0; first < op_count_; first += OpHandler::kMaxBatch) execute_batch(first);
}

void SlotPoller::execute_batch(size_t first) {
  const size_t count = batch_from(first).size();
  handler_->prepare(batch_from(first), std::span(op_lanes_).subspan(first, count));
  handler_->locate();
  if (const auto next = batch_from(first + count); !next.empty()) handler_->foresee(next);
  for (size_t i = 0; i < count; ++i) {
    const op::Op& op = ops_[first + i];
    Message& message = messages_[op_messages_[first + i]];
    uint32_t& lane_work = messages_[message.first_of_lane].lane_work;
    if (lane_work >= kLaneWork) continue;  // put_off_rest() sees to it
    base::prefetch_for_write(message.end + kWriteAhead);
    const op::Result result = handler_->execute(i);
    message.reserved -= wire::min_result_size(op);
    std::byte* const end = write_result(message, first, i, op, result);
    lane_work += 1 + result.work + static_cast<uint32_t>(static_cast<size_t>(end - message.end) / kBytesPerWork);
    message.end = end;
    ++message.executed;
  }
}

// Whether a result behind that of this op, in the same message, may have a value.
bool SlotPoller::values_follow(size_t position) const {
  for (size_t i = position + 1; i < op_count_ && op_messages_[i] == op_messages_[position]; ++i) {
    if (may_have_value(ops_[i].code)) return true;
  }
  return false;
}

// Of op `index` of the batch that begins at `first`. Returns the end of the result.
inline std::byte* SlotPoller::write_result(Message& message, size_t first, size_t index, const op::Op& op,
                                           const op::Result& result) {
  const size_t left = static_cast<size_t>(message.limit - message.end);
  const bool is_long = message.reserved > 0 && result.total_length > kTruncatedValue;
  const size_t room = result_room(left, message.reserved, is_long && values_follow(first + index), op, result);
  if (result.total_length >= kLeastKept) [[unlikely]]
    return write_long_result(message, index, op, result, room);
  return wire::encode_result(message.end, room, op, result);
}

// The value may be lent; or left out, and noted as pieces.
std::byte* SlotPoller::write_long_result(Message& message, size_t index, const op::Op& op, const op::Result& result,
                                         size_t room) {
  const LaneBinding& binding = lanes_[message.lane]->binding;
  if (binding.endpoint->limits().is_one_process && room >= wire::min_result_size(op) + sizeof(op::LoanName)) {
    const op::LoanName lent = handler_->lend(index, result);
    if (lent.loan != nullptr) return wire::encode_lent_result(message.end, room, op, result, lent);
  }
  if (!binding.seal.heads_only || !relay_->sends_pieces(binding) ||
      message.piece_count + 1 + result.further.size() > kMaxPieces || !handler_->keep(index, result)) {
    return wire::encode_result(message.end, room, op, result);
  }
  size_t size = 0;
  std::byte* at = wire::encode_result_head(message.end, room, op, result, size);
  const auto leave_out = [&](std::string_view bytes) {
    bytes = bytes.substr(0, size);
    if (bytes.empty()) return;
    message.pieces[message.piece_count++] = {static_cast<size_t>(at - message.response), bytes};
    at += bytes.size();
    size -= bytes.size();
  };
  leave_out(result.value);
  for (const std::string_view piece : result.further) leave_out(piece);
  return at;
}

// Messages that are not finished leave the round: from the first of a lane on, they are taken again in the lane's next
// round.
void SlotPoller::put_off_rest() {
  unfinished_count_ = 0;
  for (const Message& message : std::span(messages_).first(message_count_)) {
    if (message.is_finished()) continue;
    ++unfinished_count_;
    Lane& lane = *lanes_[message.lane];
    if (lane.state == Lane::State::kBroken || lane.expected <= message.seq) continue;
    put_off(message);
  }
}

void SlotPoller::put_off(const Message& message) {
  Lane& lane = *lanes_[message.lane];
  transport::copy_pieces(message.response, message.kept());
  lane.expected = message.seq;
  lane.executed_ops = message.executed;
  lane.results_end = static_cast<size_t>(message.end - message.response);
  lane.begun_ns = message.begun_ns;
  Awake& awake = *find_awake(message.lane);
  awake.expected = lane.expected;
  awake.request = lane.request_slot();
  awake.is_behind = true;
  behind_.push_back(message.lane);
}

// The time that a round took is needed by clients that choose between fetching and pushing, and for telling them which is
// cheap. A client that is served within its own flush does not choose: where nobody else does, the clock is not read.
void SlotPoller::publish(bool is_at_flush) {
  const uint64_t now_ns = is_at_flush && far_sessions_ == 0 ? round_began_ns_ : clock_.now_ns();
  for (Message& message : std::span(messages_).first(message_count_)) {
    if (!message.is_finished()) continue;
    const auto processing_ns = static_cast<uint32_t>(std::min<uint64_t>(now_ns - message.begun_ns, UINT32_MAX));
    counters_.ops += message.request.op_count;
    Lane& lane = *lanes_[message.lane];
    const auto length = static_cast<uint32_t>(message.end - message.response - ptrdiff_t{sizeof(ResponseHeader)});
    wire::write_response_head(message.response, lane.binding.seal, message.seq, length, message.request.op_count,
                              processing_ns, lane.binding.knows_deliver ? hints_of(lane) : 0);
    publish_word(message.response, message.seq);
  }
  push_load_.worked(round_began_ns_, now_ns, far_sessions_);
  counters_.messages += message_count_ - unfinished_count_;
  counters_.put_off += unfinished_count_;
}

// That the lane slept is said once, with the message that woke it.
uint8_t SlotPoller::hints_of(Lane& lane) const {
  const bool slept = std::exchange(lane.slept, false);
  return static_cast<uint8_t>((push_load_.is_cheap() ? wire::kPushingIsCheap : 0) | (slept ? wire::kLaneSlept : 0));
}

// A client says with the request that it wants its response pushed, or later, by want: then it looks once more, and
// either sees the response or is seen to want it.
bool SlotPoller::is_wanted(const Message& message, const LaneBinding& binding) const {
  if ((message.request.flags & wire::kPush) != 0) return true;
  const uint64_t want = observe_word(binding.endpoint->request_memory() + binding.layout.want_offset(binding.lane));
  return want >= message.seq;
}

// To the client, by the home. Where it is a push: by whichever thread that is.
void SlotPoller::deliver(const LaneBinding& binding, size_t offset, size_t length) {
  if (binding.endpoint->limits().deliver_is_wakeup || binding.home == options_.partition) {
    binding.endpoint->deliver(binding.lane, offset, length);
  } else {
    relay_->relay(binding, offset, length, {});
  }
}

// After publishing: one full fence, then reads want. A client that wrote want before its last fetch either saw the
// result, or its want is seen here.
void SlotPoller::push() {
  base::full_fence();
  const transport::ServerEndpoint* woken = nullptr;
  for (const Message& message : std::span(messages_).first(message_count_)) {
    if (!message.is_finished()) continue;
    const LaneBinding& binding = lanes_[message.lane]->binding;
    if (binding.is_served_at_flush) continue;
    if (binding.endpoint->limits().results_are_pushed) {
      relay_->relay(binding, message.response_offset, static_cast<size_t>(message.end - message.response),
                    message.kept());
      ++counters_.deliveries;
      continue;
    }
    if (!is_wanted(message, binding)) continue;
    if (binding.endpoint->limits().deliver_is_wakeup) {
      if (woken == binding.endpoint) continue;  // one wake-up serves all of this round
      woken = binding.endpoint;
    }
    deliver(binding, message.response_offset, static_cast<size_t>(message.end - message.response));
    counters_.asked += message.request.flags & wire::kPush;
    ++counters_.deliveries;
  }
}

void SlotPoller::complete(LaneId id, const CompletedMessage& message) {
  EGRET_ASSERT_OWNER(owner_);
  Lane& lane = *lanes_[id];
  EGRET_DCHECK(message.seq == lane.completed + 1);
  const LaneBinding& binding = lane.binding;
  std::byte* const slot =
      binding.endpoint->response_memory() + binding.layout.response_offset(binding.lane, message.seq);
  const uint64_t took_ns = clock_.now_ns() - message.begun_ns;
  wire::write_response_head(slot, binding.seal, message.seq,
                            static_cast<uint32_t>(message.end - sizeof(ResponseHeader)), message.op_count,
                            static_cast<uint32_t>(std::min<uint64_t>(took_ns, UINT32_MAX)));
  publish_word(slot, message.seq);
  lane.completed = message.seq;
  lane.last_progress_ns = message.begun_ns + took_ns;
  ++counters_.messages;
  counters_.ops += message.op_count;
  completed_.push_back({id, message.seq, message.end});
}

// As push(). A wake-up serves all that its endpoint's client waits for.
void SlotPoller::push_completed() {
  EGRET_ASSERT_OWNER(owner_);
  if (completed_.empty()) return;
  base::full_fence();
  const transport::ServerEndpoint* woken = nullptr;
  for (const Completed& each : completed_) {
    const LaneBinding& binding = lanes_[each.lane]->binding;
    if (woken == binding.endpoint) continue;
    if (observe_word(binding.endpoint->request_memory() + binding.layout.want_offset(binding.lane)) < each.seq)
      continue;
    woken = binding.endpoint;
    binding.endpoint->deliver(binding.lane, binding.layout.response_offset(binding.lane, each.seq), each.length);
    ++counters_.deliveries;
  }
  completed_.clear();
}

void SlotPoller::park(bool all) {
  if (all) return park_idle(0, 0, 0);
  park_idle(options_.lane_idle_ns, options_.far_lane_idle_ns, options_.embedded_idle_ns);
}

void SlotPoller::park_long_idle() {
  const auto long_idle = [](uint64_t idle_ns) { return std::max(idle_ns, kLongIdleNs); };
  park_idle(long_idle(options_.lane_idle_ns), long_idle(options_.far_lane_idle_ns),
            long_idle(options_.embedded_idle_ns));
}

void SlotPoller::park_pushed() {
  park_idle(UINT64_MAX, UINT64_MAX, UINT64_MAX);
}

void SlotPoller::park_idle(uint64_t idle_ns, uint64_t far_idle_ns, uint64_t embedded_idle_ns) {
  EGRET_ASSERT_OWNER(owner_);
  if (awake_.empty()) return;
  const uint64_t now = clock_.now_ns();
  size_t parked = 0;
  // Lanes that go to sleep are moved to the end of awake_; one fence serves them all.
  for (size_t i = 0; i + parked < awake_.size();) {
    Lane& lane = *lanes_[awake_[i].id];
    const transport::Limits& limits = lane.binding.endpoint->limits();
    const uint64_t near_ns = lane.binding.is_embedded ? embedded_idle_ns : idle_ns;
    const uint64_t least_ns = limits.results_are_pushed ? 0 : limits.fetch_is_local ? near_ns : far_idle_ns;
    // Whose answers are under way asks again when they have come.
    const bool is_waiting = taker_ != nullptr && least_ns > 0 && lane.completed + 1 != lane.expected;
    if (awake_[i].is_behind || is_waiting || now - lane.last_progress_ns < least_ns) {
      ++i;
      continue;
    }
    // Where results are pushed nobody looks there, and the slot's last response may be on its way to the socket still.
    if (!limits.results_are_pushed) {
      const size_t offset = lane.binding.layout.response_offset(lane.binding.lane, lane.expected);
      publish_word(lane.binding.endpoint->response_memory() + offset + offsetof(ResponseHeader, asleep), lane.expected);
    }
    ++parked;
    std::swap(awake_[i], awake_[awake_.size() - parked]);
  }
  if (parked == 0) return;
  base::full_fence();
  for (size_t i = awake_.size(); parked > 0; --parked) {
    --i;
    Lane& lane = *lanes_[awake_[i].id];
    if (observe_word(awake_[i].request) == lane.expected) continue;  // it came just now: stay awake
    lane.state = Lane::State::kAsleep;
    lane.slept = false;
    ++counters_.naps;
    remove_awake(i);
    if (std::exchange(lane.tells_asleep, false)) tell_asleep(lane.binding, lane.expected);
  }
}

// The client would not look at the next response slot, where the lane says that it is asleep: its head is pushed.
// What the client sends before it hears of that comes after the last look: it rings when it has heard.
void SlotPoller::tell_asleep(const LaneBinding& binding, uint64_t expected) {
  ++counters_.told;
  deliver(binding, binding.layout.response_offset(binding.lane, expected), sizeof(ResponseHeader));
}

bool SlotPoller::is_awake_for_local_only() const {
  return std::ranges::all_of(
      awake_, [&](const Awake& awake) { return lanes_[awake.id]->binding.endpoint->limits().fetch_is_local; });
}

bool SlotPoller::awaits_requests() const {
  return std::ranges::any_of(awake_, [&](const Awake& awake) {
    return !awake.is_behind && lanes_[awake.id]->completed + 1 == awake.expected;
  });
}

int SlotPoller::clients_cpu() const {
  int common = -1;
  for (const Awake& awake : awake_) {
    const int cpu = lanes_[awake.id]->binding.endpoint->client_cpu();
    if (cpu < 0 || (common >= 0 && cpu != common)) return -1;
    common = cpu;
  }
  return common;
}

void SlotPoller::ring(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  ++counters_.rings;
  for (const Attached& rung : lanes_of(session_id)) wake(rung.id);
}

void SlotPoller::wake(LaneId id) {
  Lane& lane = *lanes_[id];
  if (lane.state != Lane::State::kAsleep) return;
  lane.state = Lane::State::kAwake;
  lane.slept = true;
  lane.last_progress_ns = clock_.now_ns();
  awake_.push_back({lane.request_slot(), lane.expected, id, false});
}

void SlotPoller::remove_awake(size_t position) {
  awake_[position] = awake_.back();
  awake_.pop_back();
}

void SlotPoller::note_torn(Lane& lane, uint64_t now_ns) {
  ++counters_.torn;
  if (lane.torn_since_ns == 0) {
    lane.torn_since_ns = now_ns;
  } else if (now_ns - lane.torn_since_ns > options_.torn_limit_ns) {
    break_session(lane, wire::DecodeError::kTorn);
  }
}

void SlotPoller::break_session(Lane& lane, wire::DecodeError why) {
  ++counters_.malformed;
  lane.state = Lane::State::kBroken;
  broken_sessions_.push_back({lane.binding.session_id, lane.binding.lane, why});
}

std::vector<BrokenSession> SlotPoller::take_broken_sessions() {
  std::vector<BrokenSession> taken;
  taken.swap(broken_sessions_);
  broken_sessions_.reserve(lanes_.size());
  return taken;
}

}  // namespace egret::rpc
