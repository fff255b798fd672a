// Which calls are to fail: EGRET_VERBS_FAIL=CALL:N[+][,CALL:N[+] ...]. The Nth call of that kind fails (counted from
// 1), with + every later one as well; nothing reaches the device then. For tests of what a daemon makes of it.
//
//   open_device alloc_pd create_cq create_qp modify_qp reg_mr   no handle, errno ENOMEM; calls of librdmacm count too
//   resize_cq                                                   EOPNOTSUPP, and the queue stays as it is
//   post_send post_recv                                         ENOMEM, and none of the list is posted
//   completion   the Nth successful completion reports IBV_WC_GENERAL_ERR, and its queue pair goes into the error state
//
// A plan that cannot be read ends the process: a test that injects nothing would pass. Thread-safe.
#pragma once

#include <cstdint>

namespace egret::interposer {

enum class Call : uint32_t {
  kOpenDevice,
  kAllocPd,
  kCreateCq,
  kResizeCq,
  kCreateQp,
  kModifyQp,
  kRegMr,
  kPostSend,
  kPostRecv,
  kCompletion,
  kEnd
};

// To be asked exactly once for each call.
bool must_fail(Call call);

}  // namespace egret::interposer
