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
    return is_removed ? settle() : finish(result);
  }
  if (result.code != ResultCode::kStored) return finish(result);
  is_stored_ = true;
  stored_ = result;
  settle();
}

void UploadCommit::settle() {
  if (pool_.route(key_).session == session_.get()) return finish(stored_);
  remove();
}

void UploadCommit::remove() {
  const Route route = pool_.route(key_);
  if (route.session == nullptr) {
    Result failure;
    failure.code = ResultCode::kSessionLost;
    return finish(failure);
  }
  session_ = rpc::SessionRef(*route.session);
  op::Op removal;
  removal.code = op::OpCode::kDelete;
  removal.key = key_;
  removal.hash = route.hash;
  if (!route.session->lanes().of(route.hash).append(removal, this)) route.session->credit().wait(this);
}

void UploadCommit::finish(const Result& result) {
  waiter_->on_result(result);
  delete this;
}

}  // namespace egret::pool
