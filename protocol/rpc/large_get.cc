#include "rpc/large_get.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace egret::rpc {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

LargeGet::LargeGet(ClientSession& session, const Op& get, LargeGetOwner& owner)
    : session_(session), owner_(owner), key_(get.key), get_(get) {
  get_.key = key_;
}

LargeGet::~LargeGet() {
  EGRET_CHECK(in_flight_ == 0);
  let_go();
}

void LargeGet::start(const Result& partial) {
  accept_version(partial);
  ask();
}

void LargeGet::start_over() {
  state_ = State::kAgain;
  ask();
}

// A version to put together: keeps its metadata and first bytes.
void LargeGet::accept_version(const Result& partial) {
  state_ = State::kChunks;
  result_ = partial;
  value_ = std::make_unique_for_overwrite<char[]>(partial.total_length);
  received_ = requested_ = static_cast<uint32_t>(partial.value.size());
  if (received_ > 0) std::memcpy(value_.get(), partial.value.data(), received_);
  result_.value = {};
}

void LargeGet::ask() {
  if (!session_.is_open()) {
    if (in_flight_ == 0) finish_with(ResultCode::kSessionLost);
    return;
  }
  if (state_ == State::kChunks) ask_chunks();
  if (state_ == State::kAgain) ask_again();
}

void LargeGet::ask_chunks() {
  ClientLane& lane = session_.lane_of(get_.hash);
  Op chunk;
  chunk.code = OpCode::kChunk;
  chunk.key = key_;
  chunk.version = result_.version;
  chunk.options = get_.options & op::kPin;
  while (requested_ < result_.total_length && in_flight_ < kMaxInFlight) {
    chunk.offset = requested_;
    chunk.length = std::min(result_.total_length - requested_, lane.max_chunk());
    if (!lane.append(chunk, this)) return wait_for_credit();
    requested_ += chunk.length;
    ++in_flight_;
  }
}

void LargeGet::ask_again() {
  if (in_flight_ > 0) return;
  ClientLane& lane = session_.lane_of(get_.hash);
  // Two gets that took the lane's one pin from each other could go on forever. Whoever has it gives credit back when it
  // ends.
  if ((get_.options & op::kPin) && !lane.take_pin(this)) return wait_for_credit();
  if (!lane.append(get_, this)) return wait_for_credit();
  ++in_flight_;
}

void LargeGet::wait_for_credit() {
  if (waiting_for_credit_) return;
  waiting_for_credit_ = true;
  session_.wait_for_credit(this);
}

void LargeGet::on_credit() {
  waiting_for_credit_ = false;
  ask();
}

void LargeGet::on_result(const Result& result) {
  --in_flight_;
  switch (state_) {
    case State::kChunks:
      return on_chunk(result);
    case State::kAgain:
      return on_answer(result);
    case State::kStale:
      if (in_flight_ == 0) on_drained();
      return;
    case State::kOver:
      if (in_flight_ == 0) owner_.on_large_get(*this);
      return;
  }
}

void LargeGet::on_chunk(const Result& chunk) {
  if (chunk.code == ResultCode::kChanged) {
    if (++restarts_ >= kMaxRestarts) get_.options |= op::kPin;
    return drain_then(State::kAgain);
  }
  if (chunk.code != ResultCode::kHit) return finish_with(chunk.code);
  const uint32_t expected = std::min(result_.total_length - received_, session_.lane_of(get_.hash).max_chunk());
  if (chunk.value.size() > expected) return finish_with(ResultCode::kInvalid);
  std::memcpy(value_.get() + received_, chunk.value.data(), chunk.value.size());
  received_ += static_cast<uint32_t>(chunk.value.size());
  if (received_ == result_.total_length) {
    result_.value = std::string_view(value_.get(), received_);
    return finish(result_);
  }
  // Less than asked for, perhaps nothing (the message held more than was expected): those under way no longer join on.
  if (chunk.value.size() < expected) return drain_then(State::kChunks);
  ask_in_turn();
}

// Those who wait for credit come first: a large value must not keep a lane to itself until it is whole.
void LargeGet::ask_in_turn() {
  if (requested_ == result_.total_length) return;
  if (session_.is_anybody_waiting()) return wait_for_credit();
  ask_chunks();
}

// Answers that are still to come are of no use; after the last of them, goes on in `next`.
void LargeGet::drain_then(State next) {
  after_drain_ = next;
  state_ = State::kStale;
  if (in_flight_ == 0) on_drained();
}

void LargeGet::on_drained() {
  state_ = after_drain_;
  requested_ = received_;
  ask();
}

void LargeGet::on_answer(const Result& answer) {
  if (answer.code != ResultCode::kHit || !answer.is_partial()) {
    if (!answer.value.empty()) {
      value_ = std::make_unique_for_overwrite<char[]>(answer.value.size());
      std::memcpy(value_.get(), answer.value.data(), answer.value.size());
    }
    result_ = answer;
    result_.value = std::string_view(value_.get(), answer.value.size());
    return finish(result_);
  }
  accept_version(answer);
  ask();
}

// Nobody calls back and nothing is held any more.
void LargeGet::let_go() {
  if (std::exchange(waiting_for_credit_, false)) session_.stop_waiting(this);
  if (session_.is_open()) session_.lane_of(get_.hash).return_pin(this);
}

void LargeGet::finish_with(ResultCode code) {
  Result result;
  result.code = code;
  finish(result);
}

void LargeGet::finish(const Result& result) {
  state_ = State::kOver;
  result_ = result;
  let_go();
  if (in_flight_ == 0) owner_.on_large_get(*this);
}

}  // namespace egret::rpc
