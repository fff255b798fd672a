// EGRET_VERBS_EVENT=EVENT:N: what a listener of librdmacm is told after its Nth request to connect was taken, once. `addr_change`: the
// address of its network device has changed, as after a bond's failover. From then on that id hears of nobody: who asks to connect there
// is turned away. Other events are async_events.h's. A plan that cannot be read ends the process. Thread: one listens.
#pragma once

#include <rdma/rdma_cma.h>

namespace egret::interposer {

// The channel has no event: whether its listener is to be told now; then `event` is what.
bool tell_listener(const rdma_event_channel* channel, rdma_cm_event** event);
// Whether this event is a request to connect at an id that hears of nobody any more. To be asked of each event.
bool is_for_deaf_listener(const rdma_event_channel* channel, const rdma_cm_event& event);
// This id begins to listen: it may be at the address of one that is no more.
void listens(const rdma_cm_id* id);
// The one event that tell_listener() gives: librdmacm does not know it.
const rdma_cm_event* told_event();

}  // namespace egret::interposer
