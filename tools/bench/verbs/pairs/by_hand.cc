#include "bench_verbs/pairs/by_hand.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr uint32_t kNumberMask = 0xffffff;
constexpr uint8_t kAckTimeout = 14;  // 4.096 us × 2^14 = 67 ms
constexpr uint8_t kRnrTimer = 12;    // 640 us
constexpr uint8_t kRetries = 6;      // Soft-RoCE takes 7 for ever: who talks to a dead process would never hear of it
constexpr uint8_t kRnrRetries = 7;   // for ever

int change(ibv_qp* pair, ibv_qp_attr attributes, ibv_qp_state state, int mask) {
  attributes.qp_state = state;
  return ibv_modify_qp(pair, &attributes, mask | IBV_QP_STATE);
}

}  // namespace

Expected<ibv_qp_attr> query_way(const rdma_cm_id* control) {
  ibv_qp_attr way{};
  ibv_qp_init_attr made{};
  const int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PORT | IBV_QP_PKEY_INDEX;
  if (const int error = ibv_query_qp(control->qp, &way, mask, &made); error != 0) {
    return Status::system_error("cannot ask for the way to the other side", error);
  }
  way.port_num = control->port_num;
  way.ah_attr.port_num = control->port_num;
  return way;
}

uint32_t way_mtu(const rdma_cm_id* control) {
  const auto way = query_way(control);
  return way ? 128u << static_cast<unsigned>(way.value().path_mtu) : 0;
}

std::string why_not_by_hand(const rdma_cm_id* control) {
  if (control->verbs->device->transport_type != IBV_TRANSPORT_IWARP) return {};
  return std::string(ibv_get_device_name(control->verbs->device)) +
         " is an iWARP device, which has neither datagrams nor queue pairs without rdma_cm";
}

int ready_pair(ibv_qp* pair, const ibv_qp_attr& way, unsigned access) {
  ibv_qp_attr wanted{};
  wanted.pkey_index = way.pkey_index;
  wanted.port_num = way.port_num;
  wanted.qkey = kDatagramKey;
  wanted.qp_access_flags = access;
  const int own = pair->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return change(pair, wanted, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
}

int connect_pair(ibv_qp* pair, const ibv_qp_attr& way, uint32_t peer, uint32_t reads, uint32_t peer_reads) {
  const bool is_reliable = pair->qp_type == IBV_QPT_RC;
  ibv_qp_attr wanted{};
  wanted.ah_attr = way.ah_attr;
  wanted.path_mtu = way.path_mtu;
  wanted.dest_qp_num = peer;
  wanted.rq_psn = peer & kNumberMask;
  wanted.max_dest_rd_atomic = static_cast<uint8_t>(peer_reads);
  wanted.min_rnr_timer = kRnrTimer;
  int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (is_reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = change(pair, wanted, IBV_QPS_RTR, mask); error != 0) return error;
  wanted.sq_psn = pair->qp_num & kNumberMask;
  wanted.max_rd_atomic = static_cast<uint8_t>(reads);
  wanted.timeout = kAckTimeout;
  wanted.retry_cnt = kRetries;
  wanted.rnr_retry = kRnrRetries;
  mask = IBV_QP_SQ_PSN;
  if (is_reliable) mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  return change(pair, wanted, IBV_QPS_RTS, mask);
}

int start_datagrams(ibv_qp* pair) {
  if (const int error = change(pair, {}, IBV_QPS_RTR, 0); error != 0) return error;
  return change(pair, {}, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

}  // namespace egret::bench_verbs
