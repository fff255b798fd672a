// Which calls are to fail: EGRET_VERBS_FAIL=CALL:N[+|-M][,CALL:N ...]. The Nth call of that kind fails (counted from
// 1), with + every later one as well, with -M all up to the Mth; nothing reaches the device then. For tests of what a
// daemon makes of it. Calls that librdmacm makes of libibverbs count too.
//
//   open_device alloc_pd create_comp_channel create_cq create_qp reg_mr   no handle, errno ENOMEM
//   query_device modify_qp query_qp req_notify_cq                         ENOMEM
//   resize_cq             EOPNOTSUPP, and the queue stays as it is
//   post_send post_recv   ENOMEM, and none of the list is posted
//   poll_cq               a negative number, and completions stay where they are
//   get_cq_event          EAGAIN, and the event stays where it is
//   completion   the Nth successful completion reports IBV_WC_GENERAL_ERR, and its queue pair goes into the error state
//   change_atomic   the Nth FETCH_ADD or COMPARE_SWAP of all lists adds, or swaps in, one more than it was told
//   change_send     the Nth SEND with immediate data has other immediate data
//   cm_...       rdma_...: the calls of librdmacm that the daemons make, but for those that free something; no handle or
//                -1, errno ENOMEM. cm_get_event leaves the event where it is.
//
// EGRET_VERBS_SLOW=CALL:N[+|-M]:MS[,CALL:N:MS ...]: these calls take so many milliseconds longer, as on a card that is slow to
// be commanded; also destroy_qp, destroy_cq and dereg_mr, which cannot fail. While a thread is in one of them, `slow_begun` is
// larger than `slow_ended`.
//
// A plan that cannot be read ends the process: a test that injects nothing would pass. Thread-safe.
#pragma once

#include <cstdint>

namespace egret::interposer {

enum class Call : uint32_t {
  kOpenDevice,
  kQueryDevice,
  kAllocPd,
  kCreateCompChannel,
  kCreateCq,
  kResizeCq,
  kCreateQp,
  kModifyQp,
  kQueryQp,
  kRegMr,
  kPostSend,
  kPostRecv,
  kPollCq,
  kReqNotifyCq,
  kGetCqEvent,
  kCompletion,
  kChangeAtomic,
  kChangeSend,
  kCmCreateEventChannel,
  kCmCreateId,
  kCmSetOption,
  kCmBindAddr,
  kCmListen,
  kCmResolveAddr,
  kCmResolveRoute,
  kCmConnect,
  kCmAccept,
  kCmReject,
  kCmMigrateId,
  kCmCreateQp,
  kCmGetEvent,
  kCmDisconnect,
  // Slow at most.
  kDestroyQp,
  kDestroyCq,
  kDeregMr,
  kEnd
};

// To be asked exactly once for each call. It takes its time if the call is to be slow.
bool must_fail(Call call);
// The same for a call that cannot fail.
void be_slow(Call call);

// EGRET_VERBS_HIDE=atomics,ud,ack_timeout,flushes: what the device is to lack. Its attributes then say that it has no
// atomics; UD queue pairs cannot be created (EOPNOTSUPP); rdma_cm does not know the option (ENOSYS); work requests that
// are flushed bring no completion, as on a device that has been taken away.
bool is_hidden(const char* capability);

}  // namespace egret::interposer
