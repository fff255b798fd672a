// libibverbs and librdmacm. What is inline in their headers (posting, polling) goes through pointers of the device's own.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "client/link/late.h"

#undef ibv_query_port
#undef ibv_reg_mr

EGRET_LATE(int, _ibv_query_gid_ex, (ibv_context * a, uint32_t b, uint32_t c, ibv_gid_entry* d, uint32_t e, size_t f),
           (a, b, c, d, e, f));
EGRET_LATE(void, ibv_ack_async_event, (ibv_async_event * a), (a));
EGRET_LATE(void, ibv_ack_cq_events, (ibv_cq * a, unsigned b), (a, b));
EGRET_LATE(ibv_pd*, ibv_alloc_pd, (ibv_context * a), (a));
EGRET_LATE(ibv_comp_channel*, ibv_create_comp_channel, (ibv_context * a), (a));
EGRET_LATE(ibv_cq*, ibv_create_cq, (ibv_context * a, int b, void* c, ibv_comp_channel* d, int e), (a, b, c, d, e));
EGRET_LATE(int, ibv_dealloc_pd, (ibv_pd * a), (a));
EGRET_LATE(int, ibv_dereg_mr, (ibv_mr * a), (a));
EGRET_LATE(int, ibv_destroy_comp_channel, (ibv_comp_channel * a), (a));
EGRET_LATE(int, ibv_destroy_cq, (ibv_cq * a), (a));
EGRET_LATE(const char*, ibv_event_type_str, (ibv_event_type a), (a));
EGRET_LATE(int, ibv_fork_init, (), ());
EGRET_LATE(int, ibv_get_async_event, (ibv_context * a, ibv_async_event* b), (a, b));
EGRET_LATE(int, ibv_get_cq_event, (ibv_comp_channel * a, ibv_cq** b, void** c), (a, b, c));
EGRET_LATE(const char*, ibv_get_device_name, (ibv_device * a), (a));
EGRET_LATE(ibv_fork_status, ibv_is_fork_initialized, (), ());
EGRET_LATE(int, ibv_modify_qp, (ibv_qp * a, ibv_qp_attr* b, int c), (a, b, c));
EGRET_LATE(int, ibv_query_device, (ibv_context * a, ibv_device_attr* b), (a, b));
EGRET_LATE(int, ibv_query_pkey, (ibv_context * a, uint8_t b, int c, __be16* d), (a, b, c, d));
EGRET_LATE(int, ibv_query_port, (ibv_context * a, uint8_t b, _compat_ibv_port_attr* c), (a, b, c));
EGRET_LATE(int, ibv_query_qp, (ibv_qp * a, ibv_qp_attr* b, int c, ibv_qp_init_attr* d), (a, b, c, d));
EGRET_LATE(ibv_mr*, ibv_reg_mr, (ibv_pd * a, void* b, size_t c, int d), (a, b, c, d));
EGRET_LATE(ibv_mr*, ibv_reg_mr_iova2, (ibv_pd * a, void* b, size_t c, uint64_t d, unsigned e), (a, b, c, d, e));
EGRET_LATE(int, ibv_resize_cq, (ibv_cq * a, int b), (a, b));
EGRET_LATE(const char*, ibv_wc_status_str, (ibv_wc_status a), (a));

EGRET_LATE(int, rdma_ack_cm_event, (rdma_cm_event * a), (a));
EGRET_LATE(int, rdma_bind_addr, (rdma_cm_id * a, sockaddr* b), (a, b));
EGRET_LATE(int, rdma_connect, (rdma_cm_id * a, rdma_conn_param* b), (a, b));
EGRET_LATE(rdma_event_channel*, rdma_create_event_channel, (), ());
EGRET_LATE(int, rdma_create_id, (rdma_event_channel * a, rdma_cm_id** b, void* c, rdma_port_space d), (a, b, c, d));
EGRET_LATE(int, rdma_create_qp, (rdma_cm_id * a, ibv_pd* b, ibv_qp_init_attr* c), (a, b, c));
EGRET_LATE(void, rdma_destroy_event_channel, (rdma_event_channel * a), (a));
EGRET_LATE(int, rdma_destroy_id, (rdma_cm_id * a), (a));
EGRET_LATE(void, rdma_destroy_qp, (rdma_cm_id * a), (a));
EGRET_LATE(int, rdma_disconnect, (rdma_cm_id * a), (a));
EGRET_LATE(const char*, rdma_event_str, (rdma_cm_event_type a), (a));
EGRET_LATE(int, rdma_get_cm_event, (rdma_event_channel * a, rdma_cm_event** b), (a, b));
EGRET_LATE(int, rdma_resolve_addr, (rdma_cm_id * a, sockaddr* b, sockaddr* c, int d), (a, b, c, d));
EGRET_LATE(int, rdma_resolve_route, (rdma_cm_id * a, int b), (a, b));
EGRET_LATE(int, rdma_set_option, (rdma_cm_id * a, int b, int c, void* d, size_t e), (a, b, c, d, e));

namespace egret::client {

std::span<const LateSymbol> verbs_symbols() {
  static const LateSymbol kSymbols[] = {EGRET_LATE_SYMBOL(_ibv_query_gid_ex),
                                        EGRET_LATE_SYMBOL(ibv_ack_async_event),
                                        EGRET_LATE_SYMBOL(ibv_ack_cq_events),
                                        EGRET_LATE_SYMBOL(ibv_alloc_pd),
                                        EGRET_LATE_SYMBOL(ibv_create_comp_channel),
                                        EGRET_LATE_SYMBOL(ibv_create_cq),
                                        EGRET_LATE_SYMBOL(ibv_dealloc_pd),
                                        EGRET_LATE_SYMBOL(ibv_dereg_mr),
                                        EGRET_LATE_SYMBOL(ibv_destroy_comp_channel),
                                        EGRET_LATE_SYMBOL(ibv_destroy_cq),
                                        EGRET_LATE_SYMBOL(ibv_event_type_str),
                                        EGRET_LATE_SYMBOL(ibv_fork_init),
                                        EGRET_LATE_SYMBOL(ibv_get_async_event),
                                        EGRET_LATE_SYMBOL(ibv_get_cq_event),
                                        EGRET_LATE_SYMBOL(ibv_get_device_name),
                                        EGRET_LATE_SYMBOL(ibv_is_fork_initialized),
                                        EGRET_LATE_SYMBOL(ibv_modify_qp),
                                        EGRET_LATE_SYMBOL(ibv_query_device),
                                        EGRET_LATE_SYMBOL(ibv_query_pkey),
                                        EGRET_LATE_SYMBOL(ibv_query_port),
                                        EGRET_LATE_SYMBOL(ibv_query_qp),
                                        EGRET_LATE_SYMBOL(ibv_reg_mr),
                                        EGRET_LATE_SYMBOL(ibv_reg_mr_iova2),
                                        EGRET_LATE_SYMBOL(ibv_resize_cq),
                                        EGRET_LATE_SYMBOL(ibv_wc_status_str)};
  return kSymbols;
}

std::span<const LateSymbol> rdmacm_symbols() {
  static const LateSymbol kSymbols[] = {EGRET_LATE_SYMBOL(rdma_ack_cm_event),
                                        EGRET_LATE_SYMBOL(rdma_bind_addr),
                                        EGRET_LATE_SYMBOL(rdma_connect),
                                        EGRET_LATE_SYMBOL(rdma_create_event_channel),
                                        EGRET_LATE_SYMBOL(rdma_create_id),
                                        EGRET_LATE_SYMBOL(rdma_create_qp),
                                        EGRET_LATE_SYMBOL(rdma_destroy_event_channel),
                                        EGRET_LATE_SYMBOL(rdma_destroy_id),
                                        EGRET_LATE_SYMBOL(rdma_destroy_qp),
                                        EGRET_LATE_SYMBOL(rdma_disconnect),
                                        EGRET_LATE_SYMBOL(rdma_event_str),
                                        EGRET_LATE_SYMBOL(rdma_get_cm_event),
                                        EGRET_LATE_SYMBOL(rdma_resolve_addr),
                                        EGRET_LATE_SYMBOL(rdma_resolve_route),
                                        EGRET_LATE_SYMBOL(rdma_set_option)};
  return kSymbols;
}

}  // namespace egret::client
