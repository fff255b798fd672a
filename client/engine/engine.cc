// Calls: from submit() to the answer. Sessions, waiting and descriptors: engine_sessions.cc.
#include "client/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/engine/upload.h"
#include "client/process/fork.h"
#include "wire/codec.h"

namespace egret::client {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;
using rpc::ClientSession;

namespace {

// Whether the op must wait for an earlier unfinished get of the same key.
bool changes(const Op& op) {
  return op.code != OpCode::kGet || (op.options & ~op::kReadOnlyGetOptions) != 0;
}

bool reads(const Op& op) {
  return op.code == OpCode::kGet && (op.options & op::kNoValue) == 0;
}

}  // namespace

// False: an op on the same key, of which the lane alone does not keep the order, is under way.
bool Engine::must_wait(const Op& op) const {
  if (order_.is_busy(op.hash)) return true;
  if (!changes(op) || order_.gets_like(op.hash) == 0) return false;
  bool is_read = false;
  const_cast<CallPool&>(calls_).for_each_in_use(
      [&](const Call& call) { is_read |= call.reads_value() && call.hash_ == op.hash; });
  return is_read;
}

Taken Engine::submit(Op& op, AnswerSink& sink, void* context, uint64_t tag, bool stays) {
  if (calls_.in_use() == 0) catch_up();
  ClientSession* session = router_.session_of(op.key);
  if (session == nullptr || !session->is_open()) [[unlikely]] {
    Taken otherwise = Taken::kYes;
    session = make_ready(op.key, otherwise);
    if (session == nullptr) return otherwise;
  }
  op.hash = session->lanes().hash(op.key);
  if (must_wait(op)) return Taken::kNoCredit;
  Call* const call = calls_.take();
  if (call == nullptr) return Taken::kNoCredit;
  call->sink = &sink;
  call->context = context;
  call->tag = tag;
  call->session_ = session;
  call->hash_ = op.hash;
  call->code_ = op.code;
  call->reads_value_ = reads(op);
  const bool takes_parts = op.code == OpCode::kSet && !wire::fits_slot(session->grant().layout, op);
  const Taken taken = takes_parts ? send_in_parts(op, *call, stays) : send(op, *call);
  if (taken != Taken::kYes) [[unlikely]]
    calls_.give(*call);
  return taken;
}

Taken Engine::send_in_parts(const Op& op, Call& call, bool stays) {
  if (op.value.size() > settings_.value_memory - value_memory_) return Taken::kTooLarge;
  call.state_ = Call::State::kSending;
  call.held_bytes_ = op.value.size();
  value_memory_ += call.held_bytes_;
  order_.begin_parts(op.hash);
  call.sending_ = std::make_unique<Upload>(call, *call.session_, op, next_upload_id_++, stays);
  call.sending_->go_on();
  return Taken::kYes;
}

Taken Engine::send(Op& op, Call& call) {
  if (call.reads_value_) {
    // A touch may make the item expire before the rest of its value is fetched: pin it.
    if ((op.options & op::kTouch) != 0) op.options |= op::kPin;
    call.options_ = op.options;
    call.exptime_ = op.exptime;
    call.key_length_ = static_cast<uint8_t>(op.key.size());
    std::memcpy(call.key_.data(), op.key.data(), op.key.size());
  }
  if (!call.session_->lanes().of(op.hash).append(op, &call)) return Taken::kNoCredit;
  call.state_ = Call::State::kOneMessage;
  if (call.reads_value_) order_.get_begins(op.hash);
  return Taken::kYes;
}

Taken Engine::submit_to_all(const Op& op, AnswerSink& sink, uint32_t& count, uint32_t& missed) {
  count = missed = 0;
  catch_up();
  connect();
  if (is_connecting()) return Taken::kConnecting;
  uint32_t lanes = 0;
  for (const auto& session : router_.sessions()) {
    for (const auto& lane : session->lanes()) {
      if (!lane->has_credit()) return Taken::kNoCredit;
      ++lanes;
    }
  }
  if (!calls_.has_room_for(lanes)) return Taken::kNoCredit;
  for (const auto& session : router_.sessions()) {
    missed += session->is_open() ? 0 : 1;
    for (const auto& lane : session->lanes()) {
      Call& call = *calls_.take();
      call.sink = &sink;
      call.context = nullptr;
      call.session_ = session.get();
      call.code_ = op.code;
      call.reads_value_ = false;
      call.state_ = Call::State::kOneMessage;
      lane->append(op, &call);
      ++count;
    }
  }
  return count > 0 ? Taken::kYes : Taken::kUnavailable;
}

uint32_t Engine::forget(const AnswerSink& sink, uint64_t tag) {
  uint32_t found = 0;
  calls_.for_each_in_use([&](Call& call) {
    if (call.sink != &sink || call.tag != tag) return;
    if (call.sending_ != nullptr) call.sending_->copy_rest();
    call.sink = nullptr;
    ++found;
  });
  return found;
}

// --- answers

void Call::on_result(const Result& result) {
  if (reads_value_) {
    engine_.order_.get_ends(hash_);
    if (result.code == ResultCode::kHit && result.is_partial()) [[unlikely]]
      return engine_.fetch_rest(*this, result);
  }
  engine_.answer(*this, result);
}

// The value does not fit its answer: it is fetched in parts.
void Engine::fetch_rest(Call& call, const Result& first) {
  const bool is_wanted = call.sink != nullptr;
  if (!is_wanted || first.total_length > settings_.value_memory - value_memory_) {
    Result failed;
    failed.code = ResultCode::kOutOfMemory;
    return answer(call, failed);
  }
  ++changes_;
  call.held_bytes_ = first.total_length;
  value_memory_ += call.held_bytes_;
  order_.begin_parts(call.hash_);
  call.state_ = Call::State::kFetching;
  call.first_ = first;
  call.first_.value = {};
  Op get;
  get.code = OpCode::kGet;
  get.options = call.options_ & static_cast<uint16_t>(~op::kFirstGetOptions);
  get.exptime = call.exptime_;
  get.key = {call.key_.data(), call.key_length_};
  get.hash = call.hash_;
  call.fetching_ = std::make_unique<rpc::LargeGet>(*call.session_, get, call);
  call.fetching_->start(first);
}

// Marks, last access and TTL are those before the first access.
void Engine::on_fetched(Call& call) {
  Result result = call.fetching_->result();
  if (result.code == ResultCode::kHit) {
    result.marks = call.first_.marks;
    result.last_access = call.first_.last_access;
    result.ttl = call.first_.ttl;
  }
  // Released after the sink has read the pieces.
  const std::unique_ptr<rpc::LargeGet> done = std::move(call.fetching_);
  answer(call, result);
}

// The commit of a value in parts is on its way: its lane keeps the order of what follows.
void Engine::on_sent(Call& call) {
  ++changes_;
  const std::unique_ptr<Upload> done = std::move(call.sending_);
  call.state_ = Call::State::kOneMessage;
  order_.end_parts(call.hash_);
  value_memory_ -= std::exchange(call.held_bytes_, 0);
}

void Engine::answer(Call& call, const Result& result) {
  if (call.sink != nullptr) call.sink->on_answer(call, result);
  finish(call);
}

void Engine::finish(Call& call) {
  ++changes_;
  if (call.state_ != Call::State::kOneMessage) [[unlikely]]
    drop_parts(call);
  calls_.give(call);
}

void Engine::drop_parts(Call& call) {
  order_.end_parts(call.hash_);
  value_memory_ -= std::exchange(call.held_bytes_, 0);
  call.fetching_.reset();
  const std::unique_ptr<Upload> failed = std::move(call.sending_);  // it may be what has called
}

}  // namespace egret::client
