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

egret_result fields_of(const Call& call, const Result& result) {
  egret_result out{};
  out.size = sizeof out;
  out.code = code_of(call, result);
  out.tag = call.tag;
  if (out.code < 0) return out;
  out.client_flags = result.client_flags;
  out.last_access = result.last_access;
  out.marks = result.marks;
  out.cas = result.cas;
  const bool leaves_value_out = result.code == ResultCode::kHit && result.value.empty();
  out.number = leaves_value_out ? result.total_length : result.number;
  out.ttl = result.ttl;
  return out;
}

egret_result result_of(const Call& call, const Result& result, Buffers& buffers) {
  egret_result out = fields_of(call, result);
  if (out.code != EGRET_HIT) return out;
  out.value_length = result.value.size();
  for (const std::string_view piece : result.further) out.value_length += piece.size();
  if (out.value_length == 0) {
    out.value = "";
    return out;
  }
  View* const view = buffers.take(out.value_length);
  char* at = view->bytes();
  out.value = at;
  out.view = view;
  std::memcpy(at, result.value.data(), result.value.size());
  at += result.value.size();
  for (const std::string_view piece : result.further) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  return out;
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
    results_.write(call.context, result_of(call, result, buffers_));
  }
  count(code_of(call, result));
  last_number_ = result.number;
}

void Batch::fail(size_t index, int code, uint64_t tag) {
  count(code);
  if (!results_.is_wanted()) return;
  egret_result failed{};
  failed.size = sizeof failed;
  failed.code = code;
  failed.tag = tag;
  results_.write(results_.element(index), failed);
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
  while (size() > 0) {
    const egret_result left = take();
    if (left.view != nullptr) buffers_.give(static_cast<View*>(left.view));
  }
}

void Queue::on_answer(const Call& call, const Result& result) {
  --under_way_;
  done_.push_back(result_of(call, result, buffers_));
}

void Queue::add_failed(int code, uint64_t tag) {
  egret_result failed{};
  failed.size = sizeof failed;
  failed.code = code;
  failed.tag = tag;
  done_.push_back(failed);
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
  }
  return first;
}

}  // namespace egret::client
