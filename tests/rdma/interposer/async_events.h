// EGRET_VERBS_EVENT=EVENT:N: what the device tells asynchronously, once, when the Nth list of work requests has been posted for sending, by
// whatever queue pair:
//
//   device_fatal   the device has failed: IBV_EVENT_DEVICE_FATAL
//   cq_err         the completion queue of that queue pair has overrun: IBV_EVENT_CQ_ERR
//   qp_fatal       that queue pair has failed: IBV_EVENT_QP_FATAL
//
// The device itself goes on. Other events are cm_events.h's. Thread-safe.
#pragma once

#include <infiniband/verbs.h>

namespace egret::interposer {

// Whether EGRET_VERBS_EVENT names one of these.
bool is_async_event_planned();
// A context that was opened: if one is planned, poll(2) of its async_fd tells of it, too.
void hear_async_events(ibv_context* context);
void forget_async_events(const ibv_context* context);
// A list was posted.
void note_posted(ibv_qp* pair);

}  // namespace egret::interposer
