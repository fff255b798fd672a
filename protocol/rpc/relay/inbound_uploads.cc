#include "rpc/relay/inbound_uploads.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace egret::rpc::relay {

using op::Op;
using op::ResultCode;

InboundUploads::~InboundUploads() {
  for (Upload& upload : uploads_) forget(upload);
  if (storing_ != nullptr) storing_->abandon();
}

InboundUploads::Upload* InboundUploads::find(uint32_t id) {
  const auto at = std::ranges::find(uploads_, id, &Upload::id);
  return at == uploads_.end() ? nullptr : &*at;
}

LargeSet* InboundUploads::make_set(const Op& op, uint32_t total) {
  Op store = op;
  store.hash = session_.lanes().hash(op.key);
  return new LargeSet(session_, store, total, next_id_++);
}

// False: the backend has no room for its parts, and this host no memory to collect them.
bool InboundUploads::find_room(Upload& upload) {
  if (upload.set->enter()) {
    upload.state = State::kSent;
    return true;
  }
  const uint32_t total = upload.set->total();
  if (!memory_.take(user_, total, may_wait_)) {
    upload.set->wait_for_room();
    return false;
  }
  upload.set->stop_waiting_for_room();
  upload.bytes = std::make_unique_for_overwrite<char[]>(total);
  upload.state = State::kCollected;
  return true;
}

Progress InboundUploads::part(const Op& op, ResultCode& code) {
  code = ResultCode::kOk;
  Upload* upload = find(op.upload_id);
  if (upload == nullptr) {
    if (uploads_.size() >= kMostOpen) {
      code = ResultCode::kOutOfMemory;
      return Progress::kAnswer;
    }
    upload = &uploads_.emplace_back();
    upload->id = op.upload_id;
    upload->set = make_set(op, op.length);
    if (op.length > session_.grant().item_size_max) upload->state = State::kRefused;
  }
  if (upload->set->key() != op.key || upload->set->total() != op.length) {
    code = ResultCode::kNoUpload;
    return Progress::kAnswer;
  }
  upload->moved_ns = now_ns(session_);
  if (upload->state == State::kRefused) return Progress::kAnswer;
  if (upload->state == State::kWaiting && !find_room(*upload)) return Progress::kStalled;
  if (upload->state == State::kCollected) {
    // A part out of its turn, as at a backend: the value is incomplete for good.
    if (op.offset != upload->collected) return Progress::kAnswer;
    std::memcpy(upload->bytes.get() + upload->collected, op.value.data(), op.value.size());
    upload->collected += static_cast<uint32_t>(op.value.size());
    return Progress::kAnswer;
  }
  const uint32_t sent = upload->set->total() - upload->set->left();
  if (op.offset > sent || op.offset + op.value.size() < sent) return Progress::kAnswer;
  const std::string_view rest = op.value.substr(sent - op.offset);
  return upload->set->send(rest) == rest.size() ? Progress::kAnswer : Progress::kStalled;
}

// Sends the rest of a value whose bytes are all here.
Progress InboundUploads::send_whole(LargeSet& set, std::string_view value, uint32_t& sent) {
  if (!set.enter_whole()) return Progress::kStalled;
  sent += static_cast<uint32_t>(set.send(value.substr(sent)));
  return sent == value.size() ? Progress::kAwaited : Progress::kStalled;
}

Progress InboundUploads::commit(const Op& op, Waiter* waiter, ResultCode& code) {
  Upload* upload = find(op.upload_id);
  if (upload == nullptr) {  // whatever the backend says of an upload that it does not know
    upload = &uploads_.emplace_back();
    upload->id = op.upload_id;
    upload->set = make_set(op, 0);
    upload->state = State::kSent;
  }
  LargeSet& set = *upload->set;
  if (set.failure() == ResultCode::kSessionLost) {
    code = ResultCode::kNotSent;
    abort(op);
    return Progress::kAnswer;
  }
  if (set.key() != op.key) {
    code = ResultCode::kNoUpload;
    return Progress::kAnswer;
  }
  if (upload->state == State::kRefused && !set.announce()) return Progress::kStalled;
  if (upload->state == State::kCollected && set.failure() == ResultCode::kOk && upload->collected == set.total()) {
    const std::string_view whole(upload->bytes.get(), upload->collected);
    if (send_whole(set, whole, upload->sent_on) == Progress::kStalled) return Progress::kStalled;
  }
  if (!set.commit(op, waiter)) return Progress::kStalled;
  give_back(*upload);
  std::exchange(upload->set, nullptr)->release();
  std::erase_if(uploads_, [](const Upload& each) { return each.set == nullptr; });
  return Progress::kAwaited;
}

void InboundUploads::abort(const Op& op) {
  Upload* const upload = find(op.upload_id);
  if (upload == nullptr) return;
  forget(*upload);
  std::erase_if(uploads_, [](const Upload& each) { return each.set == nullptr; });
}

Progress InboundUploads::store(const Op& op, Waiter* waiter, ResultCode& code) {
  if (storing_ == nullptr) {
    storing_ = make_set(op, static_cast<uint32_t>(op.value.size()));
    stored_ = 0;
  }
  if (storing_->failure() == ResultCode::kSessionLost || storing_->total() != op.value.size()) {
    std::exchange(storing_, nullptr)->abandon();
    code = ResultCode::kNotSent;
    return Progress::kAnswer;
  }
  if (send_whole(*storing_, op.value, stored_) == Progress::kStalled) return Progress::kStalled;
  if (!storing_->commit(op, waiter)) return Progress::kStalled;
  std::exchange(storing_, nullptr)->release();
  return Progress::kAwaited;
}

bool InboundUploads::expire(uint64_t now_ns) {
  for (Upload& upload : uploads_) {
    if (upload.moved_ns + kIdleNs <= now_ns) forget(upload);
  }
  std::erase_if(uploads_, [](const Upload& each) { return each.set == nullptr; });
  return !uploads_.empty();
}

void InboundUploads::give_back(Upload& upload) {
  if (std::exchange(upload.bytes, nullptr) != nullptr) memory_.give(user_, upload.set->total());
}

void InboundUploads::forget(Upload& upload) {
  give_back(upload);
  std::exchange(upload.set, nullptr)->abandon();
}

}  // namespace egret::rpc::relay
