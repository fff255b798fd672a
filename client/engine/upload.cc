#include "client/engine/upload.h"

#include <cstring>
#include <utility>

#include "client/engine/call.h"
#include "client/engine/engine.h"
#include "op/item_size.h"

namespace egret::client {

Upload::Upload(Call& call, rpc::ClientSession& session, const op::Op& op, uint32_t id, bool stays)
    : call_(call),
      session_(session),
      set_(new rpc::LargeSet(session, op, static_cast<uint32_t>(op.value.size()), id)),
      is_too_large_(op::memcached_item_size(op.key.size(), op.client_flags, op.value.size()) >
                    session.grant().item_size_max),
      left_(op.value) {
  if (!stays) copy_rest();
}

void Upload::copy_rest() {
  if (copied_ != nullptr || is_too_large_) return;
  copied_ = std::make_unique_for_overwrite<char[]>(left_.size());
  std::memcpy(copied_.get(), left_.data(), left_.size());
  left_ = {copied_.get(), left_.size()};
}

Upload::~Upload() {
  if (is_waiting_) session_.credit().stop_waiting(this);
  if (set_ != nullptr) set_->abandon();
}

void Upload::on_credit() {
  is_waiting_ = false;
  go_on();
}

void Upload::go_on() {
  if (set_->failure() == op::ResultCode::kSessionLost) {
    op::Result lost;
    lost.code = op::ResultCode::kSessionLost;
    return call_.engine_.answer(call_, lost);
  }
  if (!try_all()) {
    is_waiting_ = true;
    return session_.credit().wait(this);
  }
  std::exchange(set_, nullptr)->release();
  call_.engine_.on_sent(call_);
}

bool Upload::try_all() {
  if (is_too_large_) return set_->announce() && set_->commit(&call_);
  if (!set_->enter_whole()) return false;
  left_.remove_prefix(set_->send(left_));
  return left_.empty() && set_->commit(&call_);
}

}  // namespace egret::client
