#include "rpc/large/large_get.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "wire/codec.h"

namespace egret::rpc {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

LargeGet::LargeGet(ClientSession& session, const Op& get, LargeGetOwner& owner)
    : session_(session), owner_(owner), key_(get.key), get_(get) {
  get_.key = key_;
  session.counters().long_values.add();
}

LargeGet::~LargeGet() {
  EGRET_CHECK(in_flight_ == 0);
  let_go();
}

void LargeGet::start(const Result& partial) {
  accept_version(partial);
}

void LargeGet::start_over() {
  state_ = State::kAgain;
  ask();
}

void LargeGet::rest() {
  copied_.reset();
  piece_count_ = 0;
  pinning_since_ns_ = 0;
  let_go();
}

void LargeGet::stop() {
  copied_.reset();
  finish_with(ResultCode::kSessionLost);
}

// The metadata and first bytes of a version are here. The rest is asked for before the first bytes are added, since
// they may stay where they are only if everything has been asked for.
void LargeGet::accept_version(const Result& first) {
  if (first.loan != nullptr) return accept_loan(first);
  state_ = State::kChunks;
  result_ = first;
  result_.value = {};
  result_.value_slot = 0;
  received_ = piece_count_ = 0;
  copied_.reset();
  requested_ = static_cast<uint32_t>(first.value.size());
  if (session_->is_open()) ask_chunks();
  add(first, true);
  if (received_ == result_.total_length) return finish_whole();
  if (!session_->is_open()) ask();
}

void LargeGet::accept_loan(const Result& whole) {
  copied_.reset();
  piece_count_ = 0;
  loan_ = std::move(*whole.loan);
  const auto pieces = loan_->pieces();
  Result lent = whole;
  lent.loan = nullptr;
  lent.value = pieces.front();
  lent.further = pieces.subspan(1);
  finish(lent);
}

// Adds the next bytes of the value. They stay where they are if they may and everything that is left has been asked
// for.
void LargeGet::add(const Result& part, bool may_stay) {
  const std::string_view bytes = part.value;
  if (bytes.empty()) return;
  const bool is_all_asked = requested_ == result_.total_length;
  if (may_stay && is_all_asked && held_.add(*session_, get_.hash, part)) {
    pieces_[piece_count_++] = bytes;
  } else {
    put_together();
    std::memcpy(copied_.get() + received_, bytes.data(), bytes.size());
    pieces_[0] = {copied_.get(), received_ + bytes.size()};
    piece_count_ = 1;
  }
  received_ += static_cast<uint32_t>(bytes.size());
}

// Copies all bytes so far into one piece.
void LargeGet::put_together() {
  if (copied_ == nullptr) copied_ = std::make_unique_for_overwrite<char[]>(result_.total_length);
  char* at = copied_.get();
  for (const std::string_view piece : std::span(pieces_).first(piece_count_)) {
    if (piece.data() != at) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  pieces_[0] = {copied_.get(), received_};
  piece_count_ = 1;
  held_.release();
}

void LargeGet::ask() {
  if (!session_->is_open()) {
    if (in_flight_ == 0) finish_with(ResultCode::kSessionLost);
    return;
  }
  if (state_ == State::kChunks) ask_chunks();
  if (state_ == State::kAgain) ask_again();
}

void LargeGet::ask_chunks() {
  ClientLane& lane = session_->lanes().of(get_.hash);
  Op chunk;
  chunk.code = OpCode::kChunk;
  chunk.key = key_;
  chunk.version = result_.version;
  chunk.options = get_.options & op::kPin;
  while (requested_ < result_.total_length && in_flight_ < kMaxInFlight) {
    chunk.offset = requested_;
    chunk.length = std::min(result_.total_length - requested_, wire::max_chunk(session_->grant().layout));
    if (!lane.append(chunk, this)) return wait_for_credit();
    requested_ += chunk.length;
    ++in_flight_;
  }
}

void LargeGet::ask_again() {
  if (in_flight_ > 0) return;
  ClientLane& lane = session_->lanes().of(get_.hash);
  // Two gets that took the lane's one pin from each other could go on forever. The get that has it announces credit
  // when it ends.
  if (get_.options & op::kPin) {
    if (!session_->lanes().pin_turn(get_.hash).take(this)) return wait_for_credit();
    if (pinning_since_ns_ == 0) pinning_since_ns_ = now_ns(*session_);
  }
  if (!lane.append(get_, this)) return wait_for_credit();
  ++in_flight_;
}

void LargeGet::wait_for_credit() {
  if (waiting_for_credit_) return;
  waiting_for_credit_ = true;
  session_->credit().wait(this);
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
      if (in_flight_ == 0) tell_owner();
      return;
  }
}

void LargeGet::on_chunk(const Result& chunk) {
  if (chunk.code == ResultCode::kChanged) return on_changed();
  if (chunk.code != ResultCode::kHit) return finish_with(chunk.code);
  const uint32_t expected = std::min(result_.total_length - received_, wire::max_chunk(session_->grant().layout));
  in_vain_ = chunk.value.empty() ? in_vain_ + 1 : 0;
  if (chunk.value.size() > expected || in_vain_ > kMostInVain) return finish_with(ResultCode::kInvalid);
  // The chunk may be shorter than asked for, even empty, if its response had too little room. Then the chunks under way
  // no longer follow on it, and what is missing must be asked for again.
  const bool is_short = chunk.value.size() < expected;
  if (is_short) put_together();
  if (!is_short) ask_in_turn();
  add(chunk, !is_short);
  if (received_ == result_.total_length) return finish_whole();
  if (is_short) drain_then(State::kChunks);
}

void LargeGet::on_changed() {
  if (++restarts_ >= kMaxRestarts) get_.options |= op::kPin;
  if (pinning_since_ns_ != 0 && now_ns(*session_) - pinning_since_ns_ > kMostChangingNs)
    return finish_with(ResultCode::kTimedOut);
  drain_then(State::kAgain);
}

// Lets other waiters for credit go first: one large value must not occupy a lane until it is complete.
void LargeGet::ask_in_turn() {
  if (requested_ == result_.total_length) return;
  if (!session_->credit().empty()) return wait_for_credit();
  ask_chunks();
}

// The answers under way are of no use; goes on in `next` after the last of them.
void LargeGet::drain_then(State next) {
  after_drain_ = next;
  state_ = State::kStale;
  if (next == State::kAgain) held_.release();
  if (in_flight_ == 0) on_drained();
}

void LargeGet::on_drained() {
  state_ = after_drain_;
  requested_ = received_;
  ask();
}

void LargeGet::on_answer(const Result& answer) {
  if (answer.code == ResultCode::kHit) {
    if (owner_.on_length(*this, answer.total_length)) accept_version(answer);
    return;  // or `this` may be gone
  }
  Result end = answer;
  end.value = {};
  finish(end);
}

// Stops waiting for credit, and gives the pin back.
void LargeGet::let_go() {
  if (std::exchange(waiting_for_credit_, false)) session_->credit().stop_waiting(this);
  if (session_->is_open()) session_->lanes().pin_turn(get_.hash).give_back(this);
}

// kNotSent here means that the request for the next part was not sent. The get itself was executed, so its caller must not
// be told that nothing was sent.
void LargeGet::finish_with(ResultCode code) {
  Result result;
  result.code = code == ResultCode::kNotSent ? ResultCode::kSessionLost : code;
  finish(result);
}

void LargeGet::finish_whole() {
  if (piece_count_ > 0) result_.value = pieces_[0];
  if (piece_count_ > 1) result_.further = std::span(pieces_).subspan(1, piece_count_ - 1);
  finish(result_);
}

void LargeGet::finish(const Result& result) {
  state_ = State::kOver;
  result_ = result;
  let_go();
  if (result.code != ResultCode::kHit) {
    held_.release();
    loan_.reset();
  }
  if (in_flight_ == 0) tell_owner();
}

// The owner may destroy this object in the call.
void LargeGet::tell_owner() {
  owner_.on_large_get(*this);
}

}  // namespace egret::rpc
