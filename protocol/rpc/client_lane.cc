#include "rpc/client_lane.h"

#include <algorithm>

#include "base/slot_copy.h"
#include "op/direct_store.h"
#include "wire/codec.h"
#include "wire/head.h"
#include "wire/plain.h"

namespace egret::rpc {

using base::observe_word;
using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;
using wire::RequestHeader;
using wire::ResponseHeader;

namespace {
constexpr uint64_t kRingAgainNs = 10'000'000;  // a ring without effect is repeated after this long
constexpr uint64_t kLongestWait = 10'000'000;  // ns; a longer wait counts as this long
constexpr uint32_t kLateAfter = 1;             // refetches; a message that needs more is late, and those behind it
constexpr uint64_t kLatePushNs = 50'000'000;   // a push that has not come after so long is looked for
constexpr uint64_t kSecondRead = uint64_t{1} << 63;  // in a tag: the rest of a response

// `loan` is the value's from now on. False: it is not lent any more.
bool borrow(const op::LoanName& lent, Result& result, op::LoanRef& loan) {
  if (!op::Loan::take(lent)) return false;
  loan = op::LoanRef(*lent.loan);
  result.loan = &loan;
  result.value = loan->pieces().front();
  return true;
}
}  // namespace

ClientLane::ClientLane(uint32_t lane, const LaneContext& context, LaneCounters& counters)
    : lane_(lane),
      layout_(context.layout),
      seal_(context.seal),
      endpoint_(context.endpoint),
      now_ns_(context.times.now_ns),
      policy_(context.fetch),
      fetch_(context.fetch),
      is_pushed_(endpoint_.limits().results_are_pushed),
      knows_deliver_(context.knows_deliver),
      known_hints_(knows_deliver_ ? wire::kResponseHints : 0),
      is_relayed_(context.is_relayed),
      slots_(std::make_unique<Slot[]>(layout_.window)),
      max_ops_(wire::max_ops(layout_)),
      waiters_(std::make_unique_for_overwrite<Waiter*[]>(size_t{layout_.window} * max_ops_)),
      counters_(counters),
      taken_ns_(context.times.taken_ns),
      durations_(context.durations),
      active_(context.active) {
  for (uint32_t i = 0; i < layout_.window; ++i) slots_[i].waiters = waiters_.get() + size_t{i} * max_ops_;
  idle_since_ns_ = now_ns_;
  show_mode();
  counters_.fetch_size.set(fetch_size());
}

// --- packing

// `least`: that it takes in any case.
size_t ClientLane::expected_result(const Op& op, size_t least) const {
  if (op.code == OpCode::kGet && !(op.options & op::kNoValue)) return least + policy_.expected_value();
  if (op.code == OpCode::kChunk) return least + op.length;
  return least;
}

bool ClientLane::open_message() {
  if (!has_credit()) {
    counters_.stalls.add();
    return false;
  }
  active_.add(lane_);
  Slot& opened = slot(next_seq_);
  EGRET_DCHECK(opened.state == State::kFree);
  opened.state = State::kOpen;
  opened.arrived = opened.is_asked = false;
  opened.pushed_at = nullptr;
  opened.read_in_flight = false;  // a read of this slot's last message may still complete; its tag tells
  opened.refetches = 0;
  opened.holds = 0;
  opened.op_count = 0;
  open_at_ = endpoint_.request_image() + layout_.request_offset(lane_, next_seq_);
  open_end_ = open_at_ + sizeof(RequestHeader);
  open_waiters_ = opened.waiters;
  open_min_results_ = 0;
  open_expected_results_ = 0;
  return true;
}

size_t ClientLane::append(const Op& op, Waiter* waiter) {
  EGRET_ASSERT_OWNER(owner_);
  const bool is_bare = wire::is_bare_get(op);
  const size_t size = is_bare ? wire::bare_get_size(op) : wire::encoded_op_size(op);
  const size_t least = is_bare ? wire::min_result_size_of_get(op.options) : wire::min_result_size(op);
  const size_t expected = expected_result(op, least);
  if (open_ops_ > 0 && !fits_open(size, least, expected)) seal_open();
  if (open_ops_ == 0 && !open_message()) return 0;
  EGRET_DCHECK(static_cast<size_t>(open_end_ - open_at_) + size <= layout_.request_slot_size);
  open_end_ = is_bare ? wire::encode_bare_get(open_end_, op) : wire::encode_op(open_end_, op);
  open_min_results_ += least;
  open_expected_results_ += expected;
  open_waiters_[open_ops_++] = waiter;
  return expected;
}

void value_room(ClientLane& lane, const Op& op, uint32_t most, uint32_t least, uint32_t messages, op::PartRoom& room) {
  EGRET_ASSERT_OWNER(lane.owner_);
  EGRET_DCHECK(op.value.empty() && !wire::is_bare_get(op));
  const size_t before = wire::encoded_op_size(op);
  const size_t result = wire::min_result_size(op);
  const bool has_open = lane.open_ops_ > 0;
  const bool fits_open = has_open && lane.fits_open(before + least, result, lane.expected_result(op, result));
  uint64_t seq = lane.next_seq_ + (has_open && !fits_open ? 1 : 0);  // append() will seal the open message
  for (; room.length < most && messages > 0 && !room.is_full(); ++seq, --messages) {
    const bool is_open = fits_open && seq == lane.next_seq_;
    if (!is_open && seq - lane.free_ >= lane.credit_) return;
    std::byte* const slot = lane.endpoint_.request_image() + lane.layout_.request_offset(lane.lane_, seq);
    std::byte* const begin = (is_open ? lane.open_end_ : slot + sizeof(RequestHeader)) + before;
    const auto left = static_cast<size_t>(slot + lane.layout_.request_slot_size - begin);
    room.add({reinterpret_cast<char*>(begin), std::min<size_t>(most - room.length, left)});
  }
}

bool execute(ClientLane& lane, const Op& op, Result& result, op::LoanRef& loan) {
  EGRET_ASSERT_OWNER(lane.owner_);
  if (!lane.is_free() || lane.has_gathered()) return false;
  op::DirectStore* const store = lane.endpoint_.direct_store(lane.lane_);
  op::LoanName lent;
  if (store == nullptr || !store->execute(op, result, lent)) return false;
  lane.counters_.messages.add();
  lane.counters_.ops.add();
  lane.counters_.direct_ops.add();
  lane.durations_.record(0);
  if (result.code == ResultCode::kHit) lane.policy_.on_value(result.total_length);
  if (lent.loan != nullptr) [[unlikely]]
    borrow(lent, result, loan);
  return true;
}

size_t gather(ClientLane& lane, const Op& op, Waiter* waiter) {
  EGRET_ASSERT_OWNER(lane.owner_);
  if (!lane.is_free() || (!lane.has_gathered() && !lane.begin_gathering())) return 0;
  const bool is_bare = wire::is_bare_get(op);
  if (!lane.gathered_->add(op, waiter, is_bare)) return 0;
  return lane.expected_result(op, is_bare ? wire::min_result_size_of_get(op.options) : wire::min_result_size(op));
}

bool ClientLane::begin_gathering() {
  const op::DirectStore* const store = endpoint_.direct_store(lane_);
  if (store == nullptr || !store->has_share()) return false;
  if (gathered_ == nullptr) gathered_ = std::make_unique<GatheredOps>();
  active_.add(lane_);
  return true;
}

// Their store's results, for their waiters.
class ClientLane::GatheredResults final : public op::ResultTaker {
 public:
  explicit GatheredResults(ClientLane& lane) : lane_(lane) {}
  void on_result(size_t index, Result& result, const op::LoanName& lent) override {
    Waiter* const waiter = lane_.gathered_->waiter(index);
    if (result.code == ResultCode::kHit) lane_.policy_.on_value(result.total_length);
    if (lent.loan != nullptr) [[unlikely]]
      return hand_out(lent, result, waiter);
    waiter->on_result(result);
  }

 private:
  ClientLane& lane_;
};

bool answer_gathered(ClientLane& lane) {
  if (lane.is_answering_ || !lane.has_gathered()) return false;
  op::DirectStore* const store = lane.endpoint_.direct_store(lane.lane_);
  if (store == nullptr) {  // the session is about to end
    lane.fail_gathered();
    return false;
  }
  const std::span<const Op> ops = lane.gathered_->ops();
  lane.counters_.messages.add();
  lane.counters_.ops.add(ops.size());
  lane.counters_.direct_ops.add(ops.size());
  lane.durations_.record(0);
  ClientLane::GatheredResults results(lane);
  lane.is_answering_ = true;
  store->execute_all(ops, results);
  lane.is_answering_ = false;
  lane.gathered_->clear();
  return true;
}

void ClientLane::begin_pass() {
  EGRET_ASSERT_OWNER(owner_);
  for (uint64_t seq = std::max(flushed_, oldest_); seq < next_seq_; ++seq) {
    Slot& sealed = slot(seq);
    const uint64_t later_ns = now_ns_ - sealed.sent_ns;
    sealed.sent_ns = now_ns_;
    sealed.fetch_ns += later_ns;
    if (sealed.pause_ns != 0) sealed.pause_ns += later_ns;
    if (rung_for_ == seq) rung_ns_ = now_ns_;
  }
  take_back_want();
}

void ClientLane::seal_open() {
  EGRET_ASSERT_OWNER(owner_);
  if (open_ops_ == 0) return;
  Slot& sealed = slot(next_seq_);
  sealed.state = State::kSent;
  sealed.op_count = static_cast<uint16_t>(open_ops_);
  sealed.sent_ns = now_ns_;
  stage_sealed(sealed, static_cast<size_t>(open_end_ - open_at_));
  counters_.messages.add();
  counters_.ops.add(open_ops_);
  ++next_seq_;
  open_ops_ = 0;
  const bool wants = policy_.mode() == FetchPolicy::Mode::kReply && !knows_deliver_;
  if (wants && !endpoint_.limits().fetch_is_local) stage_want();
}

void ClientLane::stage_sealed(Slot& sealed, size_t length) {
  const Way way = knows_deliver_ ? choose_way() : Way{};
  sealed.is_asked = (way.flags & wire::kPush) != 0;
  sealed.pause_ns = way.pause_ns;
  // If the lane of a backend that cannot be asked slept last time, it probably sleeps again: fetch at once, so that it is
  // rung soon.
  const bool fetches_at_once = !knows_deliver_ && slept_ && oldest_ == next_seq_;
  sealed.fetch_ns = now_ns_ + (sealed.is_asked ? kLatePushNs : fetches_at_once ? 0 : policy_.first_fetch_ns());
  const auto body = static_cast<uint32_t>(length - sizeof(RequestHeader));
  wire::write_request_head(open_at_, seal_, next_seq_, body, sealed.op_count, way.flags);
  const size_t offset = layout_.request_offset(lane_, next_seq_);
  if (!way.rings) return endpoint_.stage_write(lane_, offset, length, next_seq_);
  endpoint_.stage_ringing_write(lane_, offset, length, next_seq_);
  rung_for_ = next_seq_;
  rung_ns_ = now_ns_;
  counters_.ringing_requests.add();
}

// A push is asked for with the request in reply mode, and of a lane that probably sleeps: then the backend has time. A
// message whose response is not fetched must not be overlooked by a lane that has fallen asleep: it rings; unless the
// message before it has asked to be told of that.
ClientLane::Way ClientLane::choose_way() {
  Way way;
  const bool is_alone = oldest_ == next_seq_;
  if (is_alone) way.pause_ns = std::max<uint64_t>(now_ns_ - idle_since_ns_, 1);
  const bool replies = policy_.mode() == FetchPolicy::Mode::kReply;
  const bool sleeps = sleep_.is_likely(next_seq_, way.pause_ns);
  const bool asks = replies || (sleeps && fetch_.mode != FetchMode::kFetch);
  way.rings = sleeps || (asks && !is_told_of_sleep_);
  is_told_of_sleep_ = replies && sleep_.is_rare();
  way.flags = static_cast<uint16_t>((asks ? wire::kPush : 0) | (is_told_of_sleep_ ? wire::kTellAsleep : 0));
  if (asks) counters_.asked.add();
  return way;
}

bool ClientLane::stage_want() {
  EGRET_ASSERT_OWNER(owner_);
  const uint64_t newest = next_seq_ - 1;
  if (outstanding() == 0 || wanted_ >= newest || is_pushed_ || slot(oldest_).is_asked) return false;
  wanted_ = newest;
  endpoint_.stage_write(lane_, layout_.want_offset(lane_), sizeof(uint64_t), newest);
  counters_.wants.add();
  return true;
}

void ClientLane::take_back_want() {
  EGRET_ASSERT_OWNER(owner_);
  if (wanted_ == 0 || !endpoint_.limits().fetch_is_local) return;
  was_wanted_ = wanted_;
  wanted_ = found_absent_ = 0;
  endpoint_.stage_write(lane_, layout_.want_offset(lane_), sizeof(uint64_t), 0);
}

// --- fetching

uint32_t ClientLane::stage_fetches(uint32_t depth) {
  EGRET_ASSERT_OWNER(owner_);
  flushed_ = next_seq_;
  if (is_pushed_) return 0;
  uint32_t staged = 0;
  const bool local = endpoint_.limits().fetch_is_local;
  if (is_relayed_ && local) published_ = next_seq_;
  const bool waits = policy_.mode() == FetchPolicy::Mode::kReply && will_be_delivered();
  if (!local && waits && !slot(oldest_).is_asked) return 0;
  for (uint64_t seq = oldest_; seq < next_seq_ && staged < depth; ++seq) {
    Slot& target = slot(seq);
    if (target.state != State::kSent && target.state != State::kAbandoned) break;
    // Also due: the last fetch before sleeping.
    const bool is_last = wanted_ >= seq && found_absent_ != oldest_ && !target.is_asked;
    const bool is_due = local || target.fetch_ns <= now_ns_ || is_last;
    if (!target.read_in_flight && !target.arrived && is_due) {
      const uint32_t size = local ? layout_.response_slot_size : fetch_size();
      target.read_bytes = size;
      target.staged_ns = now_ns_;
      target.after_want = wanted_ >= seq;
      stage_read(target, seq, 0, size, tag_of(seq));
      counters_.fetches.add();
      ++staged;
    }
    if (local) break;  // the next one is fetched when this one is in
    // Responses are published in order: behind one that is late none is looked for, but in the last fetch.
    if (knows_deliver_ && seq == oldest_ && target.refetches > kLateAfter && wanted_ < seq) break;
  }
  return staged;
}

void ClientLane::stage_read(Slot& target, uint64_t seq, size_t from, size_t length, uint64_t tag) {
  endpoint_.stage_read(lane_, layout_.response_offset(lane_, seq) + from, length, tag);
  target.read_in_flight = true;
  ++reads_in_flight_;
}

bool ClientLane::on_fetched(uint64_t tag) {
  EGRET_ASSERT_OWNER(owner_);
  --reads_in_flight_;
  if (is_relayed_) look_if_asleep();
  // The full seq is the outstanding one with the tag's low bits.
  const uint64_t seq = oldest_ + ((tag - oldest_) & kSeqMask);
  if (seq >= next_seq_) return true;  // an older one, delivered meanwhile
  Slot& fetched = slot(seq);
  fetched.read_in_flight = false;
  if (knows_deliver_ && !(tag & kSecondRead) && taken_ns_ > fetched.staged_ns) {
    policy_.on_read(taken_ns_ - fetched.staged_ns);
  }
  if (fetched.arrived) return true;  // it was pushed meanwhile, and waits for its turn
  const std::byte* at = endpoint_.response_image() + layout_.response_offset(lane_, seq);
  if (observe_word(at) != seq) {
    fetched.vain_ns = fetched.staged_ns - fetched.sent_ns;
    ++fetched.refetches;
    const uint64_t pause_ns = FetchPolicy::refetch_ns(now_ns_ - fetched.sent_ns, fetched.refetches);
    fetched.fetch_ns = now_ns_ + (fetched.is_asked ? kLatePushNs : pause_ns);
    counters_.refetches.add();
    if (fetched.after_want && seq == oldest_) found_absent_ = seq;
    pushed_ = 0;
    ring_if_asleep(at, seq);
    return true;
  }
  if (!endpoint_.limits().fetch_is_local && !(tag & kSecondRead)) {
    // The first F bytes are here; a longer response takes a second read. A torn length only makes it too long or too
    // short.
    const size_t whole = wire::response_size(at, layout_.response_slot_size);
    const uint32_t have = fetched.read_bytes;
    if (whole > have) {
      stage_read(fetched, seq, have, whole - have, tag_of(seq) | kSecondRead);
      counters_.second_reads.add();
      return true;
    }
  }
  if (!wire::is_whole_response(at, layout_.response_slot_size, seal_, seq)) {
    ++fetched.refetches;
    counters_.torn.add();
    return true;
  }
  fetched.arrived = true;
  return take_arrived();
}

bool ClientLane::on_delivered(std::span<const std::byte> bytes) {
  EGRET_ASSERT_OWNER(owner_);
  if (bytes.size() < sizeof(ResponseHeader)) return true;
  const uint64_t seq = observe_word(bytes.data());
  if (is_pushed_) return outstanding() == 0 || on_pushed(seq, bytes);
  if (knows_deliver_) hear_of_sleep(bytes.data(), seq);
  if (seq < oldest_ || seq >= next_seq_ || slot(seq).arrived) return true;
  if (knows_deliver_ && bytes.size() == sizeof(ResponseHeader)) return true;  // no response is so short
  Slot& pushed = slot(seq);
  const size_t room = std::min<size_t>(bytes.size(), layout_.response_slot_size);
  if (!wire::is_whole_response(bytes.data(), room, seal_, seq)) {
    // The push came, but its bytes were unusable: it has to be fetched. A read that is under way was staged before this
    // push and does not count as the last one.
    pushed.is_asked = pushed.after_want = false;
    pushed.fetch_ns = now_ns_;
    if (seq == oldest_) found_absent_ = 0;
    return true;
  }
  counters_.replies.add();
  // If it is not its turn, it waits in its reply slot, which the server uses again only when this one is.
  pushed.arrived = true;
  pushed.pushed_at = bytes.data();
  return take_arrived();
}

// What is pushed is the head of a response slot, or more of it. If the lane says there that it sleeps, and waits for a
// message that does not ring: it has not come in time.
void ClientLane::hear_of_sleep(const std::byte* header, uint64_t seq) {
  const uint64_t awaited = observe_word(header + offsetof(ResponseHeader, asleep));
  if (awaited == seq || awaited < oldest_ || awaited > next_seq_) return;
  sleep_.told(awaited);
  if (awaited < next_seq_) ring_for(awaited);
}

// Where every response is pushed: the bytes are in their slot already, as if they had been fetched. One that is pushed
// twice, or that is not whole, would be waited for in vain: the backend is broken.
bool ClientLane::on_pushed(uint64_t seq, std::span<const std::byte> bytes) {
  if (seq < oldest_ || seq >= next_seq_ || slot(seq).arrived) return false;
  if (bytes.data() != endpoint_.response_image() + layout_.response_offset(lane_, seq)) return false;
  if (!wire::is_whole_response(bytes.data(), bytes.size(), seal_, seq)) return false;
  counters_.replies.add();
  slot(seq).arrived = true;
  return take_arrived();
}

bool ClientLane::take_arrived() {
  while (oldest_ < next_seq_ && slot(oldest_).arrived) {
    const std::byte* const pushed = slot(oldest_).pushed_at;
    const std::byte* const image = endpoint_.response_image() + layout_.response_offset(lane_, oldest_);
    if (!finish(oldest_, pushed != nullptr ? pushed : image)) return false;
  }
  return true;
}

// The response to the oldest message is whole at `response`: gives the waiters their results and frees the slot.
bool ClientLane::finish(uint64_t seq, const std::byte* response) {
  Slot& done = slot(seq);
  wire::Response head;
  if (!wire::read_response_head(response, layout_.response_slot_size, head, known_hints_)) return false;
  const uint16_t count = head.result_count;
  if (count != done.op_count) return false;
  learn(done, head);
  if (seq <= pushed_) counters_.replies.add();
  const bool abandoned = done.state == State::kAbandoned;
  const uint32_t value_slot = layout_.slot_of(seq) + 1;
  wire::ResultReader results(head.body, head.length,
                             {.is_relayed = is_relayed_, .takes_loans = endpoint_.limits().is_one_process});
  Result result;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    if (!results.next(result) || (is_last && !results.at_end())) {
      // fail_all() answers the rest of this message, beginning with the waiter that got no result.
      std::copy(done.waiters + i, done.waiters + count, done.waiters);
      done.op_count = static_cast<uint16_t>(count - i);
      return false;
    }
    if (const op::LoanName* const lent = results.loan(); lent != nullptr) [[unlikely]] {
      hand_out(*lent, result, abandoned ? nullptr : done.waiters[i]);
      continue;
    }
    if (abandoned) continue;
    result.value_slot = value_slot;
    if (result.code == ResultCode::kHit) policy_.on_value(result.total_length);
    done.waiters[i]->on_result(result);
  }
  done.state = done.holds > 0 ? State::kHeld : State::kFree;
  done.arrived = false;
  ++oldest_;
  idle_since_ns_ = now_ns_;
  free_slots();
  // Responses are published in order: the next one, if a fetch of it found nothing, may be there by now.
  if (outstanding() > 0 && slot(oldest_).refetches > 0) slot(oldest_).fetch_ns = now_ns_;
  return true;
}

// A value that its store lends, to whoever waits for it: null: nobody does any more.
void ClientLane::hand_out(const op::LoanName& lent, Result& result, Waiter* waiter) {
  op::LoanRef loan;
  if (!borrow(lent, result, loan)) {  // the backend has ended the session
    result = Result{};
    result.code = ResultCode::kSessionLost;
  }
  if (waiter != nullptr) waiter->on_result(result);
}

uint32_t ClientLane::hold(const Result& result) {
  EGRET_ASSERT_OWNER(owner_);
  if (result.value_slot == 0) return 0;
  Slot& held = slots_[result.value_slot - 1];
  EGRET_DCHECK(held.state == State::kSent);
  if (held.holds++ == 0) ++held_slots_;
  return result.value_slot;
}

void ClientLane::release(uint32_t held) {
  EGRET_ASSERT_OWNER(owner_);
  Slot& released = slots_[held - 1];
  EGRET_DCHECK(released.holds > 0);
  if (--released.holds > 0) return;
  --held_slots_;
  if (released.state != State::kHeld) return;
  released.state = State::kFree;
  free_slots();
}

void ClientLane::free_slots() {
  while (free_ < oldest_ && slot(free_).state == State::kFree) ++free_;
}

// Learns from an answered message when to fetch the next one, how many bytes, and whether to fetch at all.
void ClientLane::learn(const Slot& done, const wire::Response& response) {
  const FetchPolicy::Mode mode = policy_.mode();
  const FetchPolicy::Reason reason = policy_.reason();
  const uint64_t waited = now_ns_ > done.sent_ns ? now_ns_ - done.sent_ns : 0;
  durations_.record(taken_ns_ > done.sent_ns ? taken_ns_ - done.sent_ns : 0);
  uint32_t refetches = done.refetches;
  if (endpoint_.limits().fetch_is_local) {
    refetches = static_cast<uint32_t>(std::min<uint64_t>(waited / fetch_.local_refetch_ns, UINT32_MAX));
  } else {
    usual_wait_ns_ = usual_wait_ns_ - usual_wait_ns_ / 8 + std::min(waited, kLongestWait) / 8;
    learn_to_wait(done, response, waited);
  }
  policy_.on_response(refetches, response.processing_ns,
                      static_cast<uint32_t>(sizeof(ResponseHeader)) + response.length);
  counters_.fetch_size.set(fetch_size());
  if (policy_.reason() == reason) return;
  show_mode();
  if (policy_.mode() == mode) return;
  const bool to_reply = policy_.mode() == FetchPolicy::Mode::kReply;
  (to_reply ? counters_.switches_to_reply : counters_.switches_to_fetch).add();
}

// Over a network. What a lane that slept made a message wait says nothing of others.
void ClientLane::learn_to_wait(const Slot& done, const wire::Response& response, uint64_t waited_ns) {
  if (is_pushed_) return;
  const bool hasty = slept_ && !knows_deliver_;
  slept_ = knows_deliver_ ? (response.hints & wire::kLaneSlept) != 0 : done.sent_ns <= rung_ns_;
  if (knows_deliver_) {
    policy_.on_hint((response.hints & wire::kPushingIsCheap) != 0);
    counters_.is_push_cheap.set((response.hints & wire::kPushingIsCheap) != 0 ? 1 : 0);
    sleep_.found(done.pause_ns, slept_);
  }
  if (slept_ || hasty) return;
  const bool was_pushed = done.pushed_at != nullptr;
  const uint64_t exactly_ns = std::max(waited_ns, taken_ns_ - std::min(taken_ns_, done.sent_ns));
  if (done.is_asked && was_pushed) {
    if (policy_.on_pushed(exactly_ns, response.processing_ns, done.sent_ns <= missed_ns_)) missed_ns_ = now_ns_;
    return;
  }
  // A stall makes all messages in flight late; it counts once.
  const bool is_news = done.refetches == 0 || done.sent_ns > missed_ns_;
  const bool was_fetched = knows_deliver_ ? !done.is_asked : policy_.mode() == FetchPolicy::Mode::kFetch;
  if (!was_fetched) return;
  if (knows_deliver_ && !was_pushed) policy_.on_fetched(exactly_ns, response.processing_ns, done.refetches);
  if (!is_news) return;
  policy_.on_first_fetch(done.refetches, done.vain_ns);
  if (done.refetches > 0) missed_ns_ = now_ns_;
}

void ClientLane::set_fetch(const FetchOptions& fetch) {
  EGRET_ASSERT_OWNER(owner_);
  fetch_ = fetch;
  policy_.set_options(fetch);
  counters_.fetch_size.set(fetch_size());
  show_mode();
}

void ClientLane::show_mode() {
  const bool replies = mode() == FetchPolicy::Mode::kReply;
  counters_.mode.set(static_cast<uint64_t>(replies ? LaneMode::kReply : LaneMode::kFetch));
  counters_.reason.set(static_cast<uint64_t>(policy_.reason()));
}

void ClientLane::ring_if_asleep(const std::byte* header, uint64_t seq) {
  if (observe_word(header + offsetof(ResponseHeader, asleep)) == seq) ring_for(seq);
}

void ClientLane::ring_for(uint64_t seq) {
  if (rung_for_ == seq && now_ns_ - rung_ns_ < kRingAgainNs) return;
  rung_for_ = seq;
  rung_ns_ = now_ns_;
  counters_.rings.add();
  if (!slot(seq).is_asked) slot(seq).fetch_ns = now_ns_ + policy_.first_fetch_ns();  // as if it were sent now
  endpoint_.ring(lane_);
}

// A relay answers later than it takes, so its lane may fall asleep while responses are outstanding: behind one of them the
// next message is not seen. Each message is looked at once, after the flush that published it: that is after its fence.
void ClientLane::look_if_asleep() {
  for (looked_ = std::max(looked_, oldest_); looked_ < published_; ++looked_) {
    ring_if_asleep(endpoint_.response_image() + layout_.response_offset(lane_, looked_), looked_);
  }
}

// --- endings

void ClientLane::answer_all(Slot& slot, ResultCode code) {
  Result result;
  result.code = code;
  for (uint32_t i = 0; i < slot.op_count; ++i) slot.waiters[i]->on_result(result);
}

void ClientLane::fail_gathered() {
  if (!has_gathered()) return;
  Result result;
  result.code = ResultCode::kNotSent;
  is_answering_ = true;
  for (size_t i = 0; i < gathered_->ops().size(); ++i) gathered_->waiter(i)->on_result(result);
  is_answering_ = false;
  gathered_->clear();
}

uint32_t ClientLane::expire(uint64_t before_ns) {
  EGRET_ASSERT_OWNER(owner_);
  uint32_t expired = 0;
  for (uint64_t seq = oldest_; seq < next_seq_; ++seq) {
    Slot& late = slot(seq);
    if (late.state != State::kSent) continue;
    if (late.sent_ns >= before_ns) break;
    ++expired;
    late.state = State::kAbandoned;
    expired_ = seq + 1;
    counters_.timeouts.add();
    answer_all(late, ResultCode::kTimedOut);
  }
  return expired;
}

uint32_t ClientLane::unanswered() const {
  uint32_t count = 0;
  for (uint64_t seq = oldest_; seq < next_seq_; ++seq) count += slot(seq).state == State::kSent ? 1 : 0;
  return count;
}

void ClientLane::fail_all() {
  EGRET_ASSERT_OWNER(owner_);
  fail_gathered();
  if (open_ops_ > 0) slot(next_seq_).op_count = static_cast<uint16_t>(open_ops_);
  const uint64_t end = next_seq_ + (open_ops_ > 0 ? 1 : 0);
  open_ops_ = 0;
  for (uint64_t seq = oldest_; seq < end; ++seq) {
    Slot& lost = slot(seq);
    const State state = lost.state;
    lost.state = State::kFree;
    if (state == State::kSent) answer_all(lost, ResultCode::kSessionLost);
    if (state == State::kOpen) answer_all(lost, ResultCode::kNotSent);
  }
  oldest_ = next_seq_ = free_ = end;
  counters_.mode.set(static_cast<uint64_t>(LaneMode::kNone));
  counters_.fetch_size.set(0);
}

}  // namespace egret::rpc
