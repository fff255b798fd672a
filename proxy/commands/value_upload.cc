#include "proxy/commands/value_upload.h"

#include <algorithm>
#include <cstring>

namespace egret::proxy {

using op::Op;
using op::OpCode;
using op::ResultCode;

ValueUpload::ValueUpload(rpc::ClientSession& session, const Op& store, uint32_t total, uint32_t id)
    : session_(session), generation_(session.generation()), key_(store.key), store_(store), total_(total), id_(id) {
  store_.key = key_;
  store_.value = {};
}

ValueUpload::~ValueUpload() {
  if (budget_ != nullptr) budget_->give(total_);
}

bool ValueUpload::collect(ByteBudget& budget) {
  if (!budget.take(total_)) return false;
  budget_ = &budget;
  collected_ = std::make_unique_for_overwrite<char[]>(total_);
  return true;
}

void ValueUpload::add(std::string_view bytes) {
  std::memcpy(collected_.get() + collected_size_, bytes.data(), bytes.size());
  collected_size_ += static_cast<uint32_t>(bytes.size());
}

bool ValueUpload::send_collected() {
  if (same_session() && !session_.lane_of(store_.hash).take_upload_turn(this)) return false;
  send(std::string_view(collected_.get(), total_).substr(sent_));
  return sent_ == total_;
}

void ValueUpload::pass_turn() {
  if (same_session() && session_.lane_of(store_.hash).give_upload_turn(this)) session_.announce_credit();
}

uint32_t ValueUpload::max_part() const {
  return same_session() ? session_.lane_of(store_.hash).max_upload_part(key_.size()) : total_;
}

ResultCode ValueUpload::failure() const {
  return same_session() ? ResultCode::kOk : ResultCode::kSessionLost;
}

op::Op ValueUpload::part(std::string_view bytes) const {
  Op part;
  part.code = OpCode::kUpload;
  part.key = key_;
  part.upload_id = id_;
  part.offset = sent_;
  part.length = std::min(total_, op::kMaxValueLength);
  part.value = bytes;
  return part;
}

bool ValueUpload::announce() {
  if (announced_ || !same_session()) return true;
  Op opening = part({});
  opening.length = op::kMaxValueLength;  // more than fits any item: refused, however close to its limit the value is
  if (!session_.lane_of(store_.hash).append(opening, this)) return false;
  ++in_flight_;
  return announced_ = true;
}

size_t ValueUpload::send(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    if (!same_session()) {
      sent_ += static_cast<uint32_t>(bytes.size() - taken);
      return bytes.size();
    }
    const Op next = part(bytes.substr(taken, max_part()));
    if (in_flight_ >= kMaxInFlight || !session_.lane_of(store_.hash).append(next, this)) return taken;
    ++in_flight_;
    taken += next.value.size();
    sent_ += static_cast<uint32_t>(next.value.size());
  }
  return taken;
}

bool ValueUpload::commit(Reply* reply) {
  Op commit = store_;
  commit.code = OpCode::kCommit;
  commit.upload_id = id_;
  return session_.lane_of(store_.hash).append(commit, reply, nullptr);
}

// Later uploads of the lane are executed after this one's commit, so the turn need not wait for its result.
void ValueUpload::release() {
  pass_turn();
  released_ = true;
  delete_if_done();
}

void ValueUpload::abandon() {
  pass_turn();
  released_ = true;
  abort_pending_ = sent_ > 0;
  try_abort();
  delete_if_done();
}

void ValueUpload::try_abort() {
  if (!abort_pending_) return;
  if (!same_session()) {
    abort_pending_ = false;  // the parts went with the session
    return;
  }
  Op abort;
  abort.code = OpCode::kAbort;
  abort.key = key_;
  abort.upload_id = id_;
  if (session_.lane_of(store_.hash).append(abort, this)) {
    ++in_flight_;
    abort_pending_ = false;
  } else {
    session_.wait_for_credit(this);
  }
}

void ValueUpload::on_credit() {
  try_abort();
  delete_if_done();
}

// A part that was refused (too large, no memory) makes the commit fail with that reason: nothing to keep here.
void ValueUpload::on_result(const op::Result&) {
  --in_flight_;
  delete_if_done();
}

void ValueUpload::delete_if_done() {
  if (released_ && in_flight_ == 0 && !abort_pending_) delete this;
}

}  // namespace egret::proxy
