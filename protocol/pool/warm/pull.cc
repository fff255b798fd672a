#include "pool/warm/pull.h"

#include <cstring>
#include <utility>

#include "pool/warm/pulls.h"
#include "wire/codec.h"

namespace egret::pool {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {
constexpr int64_t kThirtyDays = 2'592'000;  // seconds; a larger exptime is an absolute time
}  // namespace

Pull::Pull(Pulls& pulls, std::string_view key, rpc::ClientSession& from, const Route& to)
    : pulls_(pulls),
      key_(key),
      from_(from),
      to_(*to.session),
      to_generation_(to.session->lanes().generation()),
      to_hash_(to.hash) {}

Pull::~Pull() {
  if (waits_for_ != nullptr) waits_for_->credit().stop_waiting(this);
  if (large_set_ != nullptr) large_set_->abandon();
  if (charged_ > 0) pulls_.memory_.give(charged_);
}

void Pull::wait_for_credit(rpc::ClientSession& session) {
  waits_for_ = &session;
  session.credit().wait(this);
}

void Pull::on_credit() {
  waits_for_ = nullptr;
  switch (state_) {
    case State::kGet:
      return ask();
    case State::kFill:
      return large_value_ != nullptr ? send_large() : send_fill();
    case State::kOver:
      return resume();
  }
}

// --- at the owner before

void Pull::start() {
  pulls_.counters_.pulled.add();
  ask();
}

// It must leave no trace there, and tell how long the value lives.
Op Pull::get() const {
  Op get;
  get.code = OpCode::kGet;
  get.options = op::kPeek | op::kWantMeta;
  get.key = key_;
  get.hash = from_->lanes().hash(key_);
  return get;
}

void Pull::ask() {
  if (!from_->is_open()) return fail();
  const Op get = this->get();
  if (!from_->lanes().of(get.hash).append(get, this)) wait_for_credit(*from_);
}

void Pull::on_result(const Result& result) {
  if (state_ == State::kGet) return on_value(result);
  const bool is_filled = result.code == ResultCode::kStored;
  const bool is_refused = result.code == ResultCode::kNotStored;
  PullCounters& counters = pulls_.counters_;
  (is_filled ? counters.filled : is_refused ? counters.refused : counters.skipped).add();
  go_on(is_filled || is_refused);
}

void Pull::on_value(const Result& result) {
  if (result.code == ResultCode::kMiss) {
    pulls_.counters_.absent.add();
    return go_on(false);
  }
  if (result.code != ResultCode::kHit) {
    pulls_.rest(*from_);
    return fail();
  }
  if (!make_fill(result)) return fail();
  if (result.is_partial()) return begin_large(result);
  fill_.key = key_;
  fill_.value = result.value;
  if (!to_->is_open()) return fail();
  value_.assign(result.value);
  if (wire::fits_slot(to_->grant().layout, fill_)) return send_fill();
  if (!pulls_.memory_.take(value_.size())) return fail();
  charged_ = value_.size();
  large_value_ = std::make_unique_for_overwrite<char[]>(charged_);
  std::memcpy(large_value_.get(), value_.data(), charged_);
  send_large();
}

// False: the value is not one that other readers should find.
bool Pull::make_fill(const Result& result) {
  if ((result.marks & op::kStale) != 0 || result.ttl == 0) return false;
  fill_ = {};
  fill_.code = OpCode::kSet;
  fill_.mode = op::SetMode::kFill;
  fill_.client_flags = result.client_flags;
  fill_.exptime = result.ttl < 0              ? 0
                  : result.ttl <= kThirtyDays ? result.ttl
                                              : pulls_.clock_.unix_seconds() + result.ttl;
  fill_.hash = to_hash_;
  return true;
}

void Pull::begin_large(const Result& partial) {
  if (!pulls_.memory_.take(partial.total_length)) return fail();
  charged_ = partial.total_length;
  rpc::LargeGetOwner& owner = *this;
  large_get_ = std::make_unique<rpc::LargeGet>(*from_, get(), owner);
  large_get_->start(partial);
}

bool Pull::on_length(rpc::LargeGet& get, uint32_t length) {
  pulls_.memory_.give(std::exchange(charged_, 0));
  if (pulls_.memory_.take(length)) {
    charged_ = length;
    return true;
  }
  get.rest();
  large_get_.reset();
  fail();
  return false;
}

// The value is copied, so that no slot is held at one member while another one's credit is waited for.
void Pull::on_large_get(rpc::LargeGet& get) {
  const Result& result = get.result();
  const ResultCode code = result.code;
  const bool is_usable = code == ResultCode::kHit && result.total_length > 0 && make_fill(result);
  if (is_usable) {
    large_value_ = std::make_unique_for_overwrite<char[]>(result.total_length);
    char* at = large_value_.get();
    const auto copy = [&at](std::string_view piece) {
      std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    };
    copy(result.value);
    for (const std::string_view piece : result.further) copy(piece);
  }
  large_get_.reset();
  if (is_usable) return send_large();
  if (code == ResultCode::kMiss) {
    pulls_.counters_.absent.add();
    return go_on(false);
  }
  if (code != ResultCode::kHit) pulls_.rest(*from_);
  fail();
}

// --- at the present owner

void Pull::send_fill() {
  state_ = State::kFill;
  if (!to_->is_open() || to_->lanes().generation() != to_generation_) return fail();
  fill_.key = key_;
  fill_.value = value_;
  if (!to_->lanes().of(to_hash_).append(fill_, this)) wait_for_credit(*to_);
}

void Pull::send_large() {
  state_ = State::kFill;
  const auto length = static_cast<uint32_t>(charged_);
  if (large_set_ == nullptr) {
    if (!to_->is_open() || to_->lanes().generation() != to_generation_) return fail();
    fill_.key = key_;
    large_set_ = new rpc::LargeSet(*to_, fill_, length, pulls_.next_upload_id_++);
  }
  if (!large_set_->enter_whole()) return wait_for_credit(*to_);
  large_sent_ += static_cast<uint32_t>(large_set_->send({large_value_.get() + large_sent_, length - large_sent_}));
  if (large_sent_ < length) return wait_for_credit(*to_);
  if (large_set_->failure() == ResultCode::kSessionLost) {
    std::exchange(large_set_, nullptr)->abandon();
    return fail();
  }
  if (!large_set_->commit(this)) return wait_for_credit(*to_);
  std::exchange(large_set_, nullptr)->release();
  large_value_.reset();
  pulls_.memory_.give(std::exchange(charged_, 0));
}

// --- the end

void Pull::fail() {
  pulls_.counters_.skipped.add();
  go_on(false);
}

void Pull::go_on(bool may_be_there) {
  state_ = State::kOver;
  may_be_there_ = may_be_there;
  resume();
}

void Pull::resume() {
  while (!waiters_.empty()) {
    PullWaiter* const waiter = waiters_.front();
    waiters_.pop_front();
    if (waiter->on_pulled(may_be_there_)) continue;
    waiters_.push_front(waiter);
    return wait_for_credit(*to_);
  }
  pulls_.on_over(*this);
}

}  // namespace egret::pool
