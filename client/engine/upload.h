// A set whose value does not fit a request slot, and is here as a whole: sends it in parts, then the commit, as credit
// comes. The commit's result answers the call.
//
//   start ─▶ room ─▶ parts ─▶ commit ─▶ (the call is of one message from here on)
//     │ larger than any item may be: no part ─▶ commit, which the backend refuses as a set that is too large
//     └ session lost before the commit: certainly not done
//
// Thread: the client's. Owned by its call.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "op/op.h"
#include "rpc/client_session.h"
#include "rpc/large/large_set.h"

namespace egret::client {

class Call;

class Upload final : private rpc::CreditWaiter {
 public:
  // `op`: the set. Its value is copied, unless it `stays` until the call is over.
  Upload(Call& call, rpc::ClientSession& session, const op::Op& op, uint32_t id, bool stays);
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Goes on as far as it can. It ends by Engine::on_sent() or Engine::on_answer() of the call, perhaps in this call.
  void go_on();
  // Copies what was not sent yet: the caller may change or free the value from then on.
  void copy_rest();

 private:
  void on_credit() override;
  // False: to be tried again when there is credit.
  bool try_all();

  Call& call_;
  rpc::ClientSession& session_;
  rpc::LargeSet* set_;  // deletes itself after release() or abandon()
  bool is_too_large_;
  bool is_waiting_ = false;
  std::unique_ptr<char[]> copied_;
  std::string_view left_;  // bytes to be sent
};

}  // namespace egret::client
