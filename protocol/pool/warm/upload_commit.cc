#include "pool/warm/upload_commit.h"

namespace egret::pool {

using op::Result;
using op::ResultCode;

bool UploadCommit::send(const Pool& pool, rpc::LargeSet& upload, rpc::Waiter* waiter) {
  auto* const commit = new UploadCommit(pool, upload, upload.session(), waiter);
  if (upload.commit(commit)) return true;
  delete commit;
  return false;
}

void UploadCommit::on_result(const Result& result) {
  if (is_stored_) {
    const bool is_removed = result.code == ResultCode::kDeleted || result.code == ResultCode::kMiss;
    if (is_removed) return settle();
    return op::has_no_answer(result.code) ? fail() : finish(result);  // it is stored: not kNotSent
  }
  if (result.code != ResultCode::kStored) return finish(result);
  is_stored_ = true;
  stored_ = result;
  if (pool_.route(key_).session == session_.get()) return finish(stored_);
  remove();  // here first: this backend may own the key again soon, and has removed what was not its own already
}

void UploadCommit::settle() {
  const Route route = pool_.route(key_);
  if (route.session == session_.get()) return finish(stored_);
  waits_for_return_ = route.waits;
  if (waits_for_return_) return pool_.returns().wait(this);
  if (route.session == nullptr) return fail();
  session_ = rpc::SessionRef(*route.session);
  tag_ = route.tag;
  remove();
}

void UploadCommit::remove() {
  if (!session_->is_open()) return fail();
  op::Op removal;
  removal.code = op::OpCode::kDelete;
  removal.key = key_;
  removal.hash = session_->lanes().hash(key_);
  removal.owner = tag_;
  if (!session_->lanes().of(removal.hash).append(removal, this)) session_->credit().wait(this);
}

void UploadCommit::fail() {
  Result failure;
  failure.code = ResultCode::kSessionLost;
  finish(failure);
}

void UploadCommit::finish(const Result& result) {
  waiter_->on_result(result);
  delete this;
}

}  // namespace egret::pool
