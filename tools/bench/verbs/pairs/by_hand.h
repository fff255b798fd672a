// Queue pairs of type RC, UC and UD without rdma_cm: from what ibv_create_qp gives to ready-to-send. The way to the peer is the
// control connection's, as rdma_cm has found it. Both sides do the same; a connection's first packet has the number of its
// sender's pair, so nothing else has to be agreed on.
//
// Cold. The functions that change a pair return 0 or errno.
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/status.h"

namespace egret::bench_verbs {

inline constexpr uint32_t kDatagramKey = 0x0e9be7;  // (qkey) any will do that both sides have
inline constexpr uint32_t kGrhBytes = 40;           // that a device puts before a datagram's payload

// How the control connection reaches the other side: address, mtu, port, index of the partition key.
base::Expected<ibv_qp_attr> query_way(const rdma_cm_id* control);
// The bytes of a packet on the way that the control connection takes: the most a datagram has.
uint32_t way_mtu(const rdma_cm_id* control);
// Why pairs cannot be made by hand on this device; empty if they can.
std::string why_not_by_hand(const rdma_cm_id* control);

// INIT. From now on RECVs can be posted. `access`: what the peer may do at all, its memories decide further.
int ready_pair(ibv_qp* pair, const ibv_qp_attr& way, unsigned access);
// RC and UC: to RTS, with the peer's pair of that number. `reads`: READs and atomics under way from here; `peer_reads`: that
// the peer may have.
int connect_pair(ibv_qp* pair, const ibv_qp_attr& way, uint32_t peer, uint32_t reads, uint32_t peer_reads);
// UD: to RTS.
int start_datagrams(ibv_qp* pair);

}  // namespace egret::bench_verbs
