// The commit of a value that was sent in parts, and whose key may have got another owner meanwhile: parts go to the
// owner at the first part, and so does the commit.
//
//   commit ─▶ stored ─ is that backend the key's owner still? ─ yes ─▶ the waiter gets the result
//                └ no ─▶ delete it there ─▶ delete at the present owner ─ asked again ─┘ failed: the waiter gets that
//
// So whoever is told that the value is stored never reads an older one, which the present owner may have: the key is
// missed. Nor does the value come back, if that backend becomes the owner again after others have changed the key. Thread: the worker's. Memory: one object for each commit, which deletes itself after its result.
#pragma once

#include "pool/pool.h"
#include "rpc/large/large_set.h"
#include "rpc/session_ref.h"

namespace egret::pool {

class UploadCommit final : private rpc::Waiter, private rpc::CreditWaiter {
 public:
  // As LargeSet::commit(). False: no credit, ask again. `pool` outlives its sessions' ops.
  static bool send(const Pool& pool, rpc::LargeSet& upload, rpc::Waiter* waiter);

 private:
  UploadCommit(const Pool& pool, const rpc::LargeSet& upload, rpc::ClientSession& session, rpc::Waiter* waiter)
      : pool_(pool), key_(upload.key()), session_(session), waiter_(waiter) {}
  ~UploadCommit() = default;
  void on_result(const op::Result& result) override;
  void on_credit() override { waits_for_return_ ? settle() : remove(); }
  void settle();
  void remove();
  void fail();
  void finish(const op::Result& result);

  const Pool& pool_;
  const std::string key_;
  rpc::SessionRef session_;  // where the value was stored; then: where the key is removed, or known to be missed
  rpc::Waiter* const waiter_;
  op::Result stored_;
  bool is_stored_ = false;
  bool waits_for_return_ = false;  // of the key's owner
  uint64_t tag_ = 0;               // of the absent owner in whose place session_ is
};

}  // namespace egret::pool
