#include "client/api/results.h"

#include <algorithm>

namespace egret::client {

using op::Result;
using op::ResultCode;

static_assert(EGRET_OK == static_cast<int>(ResultCode::kOk) && EGRET_HIT == static_cast<int>(ResultCode::kHit) &&
              EGRET_MISS == static_cast<int>(ResultCode::kMiss) &&
              EGRET_STORED == static_cast<int>(ResultCode::kStored) &&
              EGRET_NOT_STORED == static_cast<int>(ResultCode::kNotStored) &&
              EGRET_EXISTS == static_cast<int>(ResultCode::kExists) &&
              EGRET_DELETED == static_cast<int>(ResultCode::kDeleted) &&
              EGRET_NUMBER == static_cast<int>(ResultCode::kNumber) &&
              EGRET_NON_NUMERIC == static_cast<int>(ResultCode::kNonNumeric) &&
              EGRET_TOO_LARGE == static_cast<int>(ResultCode::kTooLarge) &&
              EGRET_OUT_OF_MEMORY == static_cast<int>(ResultCode::kOutOfMemory));
constexpr bool is_same(uint32_t mark, op::ResultMarks as) {
  return mark == as;
}
static_assert(is_same(EGRET_MARK_FETCHED, op::kFetched) && is_same(EGRET_MARK_STALE, op::kStale) &&
              is_same(EGRET_MARK_WON, op::kWon) && is_same(EGRET_MARK_TOKEN_SENT, op::kTokenSent) &&
              is_same(EGRET_MARK_CREATED, op::kCreated));
static_assert(sizeof(egret_result) == 80 && sizeof(egret_op) == 112);

int code_of(const Call& call, const Result& result) {
  switch (result.code) {
    case ResultCode::kOk:
    case ResultCode::kHit:
    case ResultCode::kMiss:
    case ResultCode::kStored:
    case ResultCode::kNotStored:
    case ResultCode::kExists:
    case ResultCode::kDeleted:
    case ResultCode::kNumber:
    case ResultCode::kNonNumeric:
    case ResultCode::kTooLarge:
      return static_cast<int>(result.code);
    case ResultCode::kOutOfMemory:  // a get: of large_value_memory
      return call.code() == op::OpCode::kGet ? EGRET_E_MEMORY : EGRET_OUT_OF_MEMORY;
    case ResultCode::kForbidden:
      return EGRET_E_DENIED;
    case ResultCode::kUnsupported:
      return EGRET_E_UNSUPPORTED;
    case ResultCode::kInvalid:
      return EGRET_E_ARGUMENT;
    case ResultCode::kSessionLost:
    case ResultCode::kTimedOut:
    case ResultCode::kNotSent:
      return call.is_unsent(result) ? EGRET_E_UNAVAILABLE : EGRET_E_UNKNOWN;
    case ResultCode::kChanged:
    case ResultCode::kNoUpload:
    case ResultCode::kWrongPartition:
      break;
  }
  return EGRET_E_UNAVAILABLE;  // refused by the backend, for a reason that the caller cannot know
}

namespace {

// A result that says nothing but what came of the op.
egret_result result_with(int code, uint64_t tag) {
  egret_result result{};
  result.size = sizeof result;
  result.code = code;
  result.tag = tag;
  return result;
}

void give_back(const egret_result& result, Buffers& buffers) {
  if (result.view != nullptr) buffers.give(static_cast<View*>(result.view));
}

}  // namespace

void write_result(const Call& call, const Result& result, Buffers& buffers, egret_result& out) {
  const int code = code_of(call, result);
  size_t length = 0;
  View* view = nullptr;
  if (code == EGRET_HIT) {
    length = result.value.size();
    for (const std::string_view piece : result.further) length += piece.size();
    if (length > 0) view = buffers.take(length);  // before `out` is touched, since it may throw
  }
  out = result_with(code, call.tag);
  if (code < 0) return;
  out.client_flags = result.client_flags;
  out.last_access = result.last_access;
  out.marks = result.marks;
  out.cas = result.cas;
  out.number = code == EGRET_HIT && length == 0 ? result.total_length : result.number;  // the value may be left out
  out.ttl = result.ttl;
  if (code != EGRET_HIT) return;
  out.value = "";
  if (view == nullptr) return;
  char* at = view->bytes();
  out.value = at;
  out.value_length = length;
  out.view = view;
  std::memcpy(at, result.value.data(), result.value.size());
  at += result.value.size();
  for (const std::string_view piece : result.further) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
}

// --- Batch

void Batch::count(int code) {
  last_code_ = code;
  if (code == EGRET_HIT) ++hits_;
  if (code >= 0) return;
  ++errors_;
  if (first_error_ == 0) first_error_ = code;
}

void Batch::on_answer(const Call& call, const Result& result) {
  --left_;
  if (call.context != nullptr) {
    results_.fill(call.context, [&](egret_result& out) { write_result(call, result, buffers_, out); });
  }
  count(code_of(call, result));
  last_number_ = result.number;
}

void Batch::fail(size_t index, int code, uint64_t tag) {
  count(code);
  if (!results_.is_wanted()) return;
  results_.fill(results_.element(index), [&](egret_result& out) { out = result_with(code, tag); });
}

// --- CopySink

void CopySink::on_answer(const Call& call, const Result& result) {
  is_over = true;
  code = code_of(call, result);
  if (code != EGRET_HIT) return;
  const auto add = [&](std::string_view piece) {
    if (length < room_) std::memcpy(to_ + length, piece.data(), std::min(piece.size(), room_ - length));
    length += piece.size();
  };
  add(result.value);
  for (const std::string_view piece : result.further) add(piece);
}

// --- Queue

Queue::~Queue() {
  while (size() > 0) give_back(take(), buffers_);
}

void Queue::on_answer(const Call& call, const Result& result) {
  --under_way_;
  if (given_ < room_) {
    to_.fill(to_.element(given_), [&](egret_result& out) { write_result(call, result, buffers_, out); });
    ++given_;
  } else {
    write_result(call, result, buffers_, done_.emplace_back());
  }
}

Queue::HandOut::HandOut(Queue& queue, egret_result* to, size_t room) : queue_(queue) {
  if (room > 0) queue_.to_ = ResultArray(to);
  queue_.room_ = room;
  while (queue_.given_ < room && queue_.size() > 0) {
    queue_.to_.fill(queue_.to_.element(queue_.given_++), [&](egret_result& out) { out = queue_.take(); });
  }
}

Queue::HandOut::~HandOut() {
  for (size_t i = 0; i < queue_.given_; ++i) {
    queue_.to_.fill(queue_.to_.element(i), [&](egret_result& lost) {
      give_back(lost, queue_.buffers_);
      lost = result_with(EGRET_E_BROKEN, lost.tag);
    });
  }
  queue_.room_ = queue_.given_ = 0;
}

void Queue::add_failed(int code, uint64_t tag) {
  done_.push_back(result_with(code, tag));
}

size_t Queue::forget(uint64_t tag) {
  size_t kept = taken_;
  for (size_t i = taken_; i < done_.size(); ++i) {
    if (done_[i].tag != tag) {
      done_[kept++] = done_[i];
    } else if (done_[i].view != nullptr) {
      buffers_.give(static_cast<View*>(done_[i].view));
    }
  }
  const size_t dropped = done_.size() - kept;
  done_.resize(kept);
  return dropped;
}

egret_result Queue::take() {
  const egret_result first = done_[taken_++];
  if (taken_ == done_.size()) {
    done_.clear();
    taken_ = 0;
  } else if (taken_ >= kMostTaken && taken_ * 2 >= done_.size()) {  // a program may never take the last one
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(taken_));
    taken_ = 0;
  }
  return first;
}

}  // namespace egret::client
