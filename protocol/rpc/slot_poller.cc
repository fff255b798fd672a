#include "rpc/slot_poller.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cpu.h"
#include "base/slot_copy.h"
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
// When a value is truncated so that later results fit, send this many bytes of it.
constexpr size_t kTruncatedValue = 4096;
constexpr size_t kMaxRoundOps = kMaxRoundMessages * wire::kMaxOpsPerMessage;
constexpr size_t kBytesPerWork = 1024;  // of results
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
  // Of the message `expected`, if the lane is in behind_. Its request is read and checked anew in each round: all that
  // is believed of it is what has been executed and where the results end.
  uint32_t executed_ops = 0;
  size_t results_end = sizeof(ResponseHeader);  // offset in the response slot
  uint64_t begun_ns = 0;

  const std::byte* request_slot() const {
    return binding.endpoint->request_memory() + binding.layout.request_offset(binding.lane, expected);
  }
};

// A request being served. `copy` has room for the largest slot.
struct SlotPoller::Message {
  LaneId lane = 0;
  uint64_t seq = 0;
  wire::Request request;          // its body is in `copy`
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

  bool is_finished() const { return executed == request.op_count; }
};

SlotPoller::SlotPoller(const PollerOptions& options, const base::Clock& clock, OpHandler& handler, DeliveryRelay& relay)
    : options_(options), clock_(clock), handler_(handler), relay_(relay) {
  messages_.resize(kMaxRoundMessages);
  ops_.resize(kMaxRoundOps);
  op_lanes_.resize(kMaxRoundOps);
  op_messages_.resize(kMaxRoundOps);
}

SlotPoller::~SlotPoller() = default;

LaneId SlotPoller::attach(const LaneBinding& binding) {
  EGRET_ASSERT_OWNER(owner_);
  for (Message& message : messages_) {
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
  handler_.lane_attached(id, binding);
  if (binding.is_served_at_flush) {
    lanes_[id]->state = Lane::State::kAwake;
    at_flush_.push_back({lanes_[id]->request_slot(), lanes_[id]->expected, id, false});
  } else {
    wake(id);
  }
  return id;
}

void SlotPoller::detach(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  const auto all_gone = lanes_of(session_id);
  for (const Attached& gone : all_gone) {
    if (const Awake* const awake = find_awake(gone.id); awake != nullptr) drop(*awake);
    std::erase(behind_, gone.id);
    handler_.lane_dropped(gone.id);
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

void SlotPoller::serve_round() {
  execute_batches();
  put_off_rest();
  publish();
  push();
}

// A round of its own for the lane that has waited longest since its messages took more than their share.
void SlotPoller::serve_behind() {
  const LaneId id = behind_.front();
  behind_.erase(behind_.begin());
  message_count_ = 0;
  op_count_ = 0;
  Awake* const awake = find_awake(id);
  EGRET_DCHECK(awake != nullptr && awake->is_behind);
  const uint64_t now_ns = clock_.now_ns();
  handler_.begin_round();
  if (observe_word(awake->request) == awake->expected) {
    take_messages(*awake, now_ns);
  } else {
    note_torn(*lanes_[id], now_ns);
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
    serve_round();
    served += message_count_;
    work += messages_[0].lane_work;
  }
  return served;
}

// Takes a lane's messages. False: it is broken, and no longer there.
bool SlotPoller::look_at(Awake& awake, uint64_t& now_ns) {
  if (observe_word(awake.request) != awake.expected || awake.is_behind) return true;
  if (now_ns == 0) {
    now_ns = clock_.now_ns();
    handler_.begin_round();
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

// True when a whole, well-formed message was taken: then it will be answered in this round.
bool SlotPoller::take_message(Awake& awake, uint64_t now_ns) {
  Lane& lane = *lanes_[awake.id];
  Message& message = messages_[message_count_];
  message.lane = awake.id;
  message.seq = awake.expected;
  const wire::RegionLayout& layout = lane.binding.layout;
  if (!wire::read_request(awake.request, layout.request_slot_size, lane.binding.seal, awake.expected,
                          message.copy.data(), message.request)) {
    note_torn(lane, now_ns);
    return false;
  }
  lane.torn_since_ns = 0;
  message.executed = std::exchange(lane.executed_ops, 0);
  message.end_offset = std::exchange(lane.results_end, sizeof(ResponseHeader));
  message.begun_ns = message.executed > 0 ? lane.begun_ns : now_ns;
  message.lane_work = 0;
  if (!decode_request(lane, message)) return false;
  message.response_offset = layout.response_offset(lane.binding.lane, message.seq);
  message.response = lane.binding.endpoint->response_memory() + message.response_offset;
  message.limit = message.response + layout.response_slot_size;
  message.end = message.response + message.end_offset;
  ++message_count_;
  op_count_ += message.request.op_count - message.executed;
  ++lane.expected;
  lane.last_progress_ns = now_ns;
  awake.expected = lane.expected;
  awake.request = lane.request_slot();
  return true;
}

// Decodes the ops of a whole request behind those of this round, without those that are executed already.
wire::DecodeError SlotPoller::decode_ops(const Lane& lane, Message& message) {
  using wire::DecodeError;
  const wire::Request& request = message.request;
  if (request.flags != 0) return DecodeError::kReserved;
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
  handler_.foresee(batch_from(0));
  for (size_t first = 0; first < op_count_; first += OpHandler::kMaxBatch) execute_batch(first);
}

void SlotPoller::execute_batch(size_t first) {
  const size_t count = batch_from(first).size();
  handler_.prepare(batch_from(first), std::span(op_lanes_).subspan(first, count));
  handler_.locate();
  if (const auto next = batch_from(first + count); !next.empty()) handler_.foresee(next);
  for (size_t i = 0; i < count; ++i) {
    const op::Op& op = ops_[first + i];
    Message& message = messages_[op_messages_[first + i]];
    uint32_t& lane_work = messages_[message.first_of_lane].lane_work;
    if (lane_work >= kLaneWork) continue;  // put_off_rest() sees to it
    base::prefetch_for_write(message.end + kWriteAhead);
    const op::Result result = handler_.execute(i);
    message.reserved -= wire::min_result_size(op);
    std::byte* const end = wire::encode_result(message.end, room_for(message, op, result), op, result);
    lane_work += 1 + result.work + static_cast<uint32_t>(static_cast<size_t>(end - message.end) / kBytesPerWork);
    message.end = end;
    ++message.executed;
  }
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

// Bytes that a result may take of its response. A value that does not fit, or would leave too little to the results
// behind it, is truncated to kTruncatedValue.
size_t SlotPoller::room_for(const Message& message, const op::Op& op, const op::Result& result) {
  const size_t room = static_cast<size_t>(message.limit - message.end) - message.reserved;
  const bool is_last = message.reserved == 0;
  if (is_last || op.code != op::OpCode::kGet || result.total_length <= kTruncatedValue) return room;
  const size_t least = wire::min_result_size(op);
  return least + result.total_length <= room / 2 ? room : std::min(room, least + kTruncatedValue);
}

void SlotPoller::publish() {
  const uint64_t now_ns = clock_.now_ns();
  for (Message& message : std::span(messages_).first(message_count_)) {
    if (!message.is_finished()) continue;
    const auto processing_ns = static_cast<uint32_t>(std::min<uint64_t>(now_ns - message.begun_ns, UINT32_MAX));
    counters_.ops += message.request.op_count;
    const Lane& lane = *lanes_[message.lane];
    const auto length = static_cast<uint32_t>(message.end - message.response - ptrdiff_t{sizeof(ResponseHeader)});
    wire::write_response_head(message.response, lane.binding.seal, message.seq, length, message.request.op_count,
                              processing_ns);
    publish_word(message.response, message.seq);
  }
  counters_.messages += message_count_ - unfinished_count_;
  counters_.put_off += unfinished_count_;
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
      relay_.relay(binding, message.response_offset, static_cast<size_t>(message.end - message.response));
      ++counters_.deliveries;
      continue;
    }
    const uint64_t want = observe_word(binding.endpoint->request_memory() + binding.layout.want_offset(binding.lane));
    if (want < message.seq) continue;
    const size_t length = static_cast<size_t>(message.end - message.response);
    if (binding.endpoint->limits().deliver_is_wakeup) {
      if (woken == binding.endpoint) continue;  // one wake-up serves all of this round
      woken = binding.endpoint;
      binding.endpoint->deliver(binding.lane, message.response_offset, length);
    } else if (binding.home == options_.partition) {
      binding.endpoint->deliver(binding.lane, message.response_offset, length);
    } else {
      relay_.relay(binding, message.response_offset, length);
    }
    ++counters_.deliveries;
  }
}

void SlotPoller::park(bool all) {
  if (all) return park_idle(0, 0);
  park_idle(options_.lane_idle_ns, options_.far_lane_idle_ns);
}

void SlotPoller::park_long_idle() {
  park_idle(std::max(options_.lane_idle_ns, kLongIdleNs), std::max(options_.far_lane_idle_ns, kLongIdleNs));
}

void SlotPoller::park_pushed() {
  park_idle(UINT64_MAX, UINT64_MAX);
}

void SlotPoller::park_idle(uint64_t idle_ns, uint64_t far_idle_ns) {
  EGRET_ASSERT_OWNER(owner_);
  if (awake_.empty()) return;
  const uint64_t now = clock_.now_ns();
  size_t parked = 0;
  // Lanes that go to sleep are moved to the end of awake_; one fence serves them all.
  for (size_t i = 0; i + parked < awake_.size();) {
    Lane& lane = *lanes_[awake_[i].id];
    const transport::Limits& limits = lane.binding.endpoint->limits();
    const uint64_t least_ns = limits.results_are_pushed ? 0 : limits.fetch_is_local ? idle_ns : far_idle_ns;
    if (awake_[i].is_behind || now - lane.last_progress_ns < least_ns) {
      ++i;
      continue;
    }
    const size_t offset = lane.binding.layout.response_offset(lane.binding.lane, lane.expected);
    publish_word(lane.binding.endpoint->response_memory() + offset + offsetof(ResponseHeader, asleep), lane.expected);
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
    ++counters_.naps;
    remove_awake(i);
  }
}

bool SlotPoller::is_awake_for_local_only() const {
  return std::ranges::all_of(
      awake_, [&](const Awake& awake) { return lanes_[awake.id]->binding.endpoint->limits().fetch_is_local; });
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
