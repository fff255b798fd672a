// The calls of librdmacm that the plan makes fail (fail_plan.h); all others go through. librdmacm is found when the
// first of them is made: a program without it can be run under the library, too.
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include "cm_events.h"
#include "counter_file.h"
#include "fail_plan.h"

// In the header these are macros.
#undef rdma_listen

#define EGRET_EXPORT extern "C" __attribute__((visibility("default")))

namespace egret::interposer {
namespace {

template <typename Function>
Function* behind(const char* name) {
  void* const found = dlvsym(RTLD_NEXT, name, "RDMACM_1.0");
  if (found == nullptr) {
    std::fprintf(stderr, "libegret_count_verbs: no %s@RDMACM_1.0 behind this library\n", name);
    _exit(70);
  }
  return reinterpret_cast<Function*>(found);
}

template <typename... Arguments>
int call_unless(Call call, const char* name, Arguments... arguments) {
  if (must_fail(call)) {
    errno = ENOMEM;
    return -1;
  }
  return behind<int(Arguments...)>(name)(arguments...);
}

}  // namespace
}  // namespace egret::interposer

using namespace egret::interposer;  // NOLINT(google-build-using-namespace): what follows is C's namespace

EGRET_EXPORT rdma_event_channel* rdma_create_event_channel() {
  if (must_fail(Call::kCmCreateEventChannel)) {
    errno = ENOMEM;
    return nullptr;
  }
  return behind<rdma_event_channel*()>("rdma_create_event_channel")();
}

EGRET_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
  return call_unless(Call::kCmCreateId, "rdma_create_id", channel, id, context, space);
}

EGRET_EXPORT int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, size_t length) {
  const bool is_timeout = level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT;
  const bool is_tos = level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS;
  if (is_timeout && is_hidden("ack_timeout")) {
    count(Counter::kRefusedByLimits);
    errno = ENOSYS;
    return -1;
  }
  if (is_timeout) count_most(Counter::kOptionAckTimeout, *static_cast<const uint8_t*>(value));
  if (is_tos) count_most(Counter::kOptionTos, *static_cast<const uint8_t*>(value));
  return call_unless(Call::kCmSetOption, "rdma_set_option", id, level, name, value, length);
}

EGRET_EXPORT int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  return call_unless(Call::kCmBindAddr, "rdma_bind_addr", id, address);
}

EGRET_EXPORT int rdma_listen(rdma_cm_id* id, int backlog) {
  listens(id);
  return call_unless(Call::kCmListen, "rdma_listen", id, backlog);
}

EGRET_EXPORT int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* target, int milliseconds) {
  return call_unless(Call::kCmResolveAddr, "rdma_resolve_addr", id, source, target, milliseconds);
}

EGRET_EXPORT int rdma_resolve_route(rdma_cm_id* id, int milliseconds) {
  return call_unless(Call::kCmResolveRoute, "rdma_resolve_route", id, milliseconds);
}

EGRET_EXPORT int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  return call_unless(Call::kCmConnect, "rdma_connect", id, parameters);
}

EGRET_EXPORT int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters) {
  return call_unless(Call::kCmAccept, "rdma_accept", id, parameters);
}

EGRET_EXPORT int rdma_reject(rdma_cm_id* id, const void* data, uint8_t length) {
  return call_unless(Call::kCmReject, "rdma_reject", id, data, length);
}

EGRET_EXPORT int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  return call_unless(Call::kCmMigrateId, "rdma_migrate_id", id, channel);
}

EGRET_EXPORT int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* attributes) {
  return call_unless(Call::kCmCreateQp, "rdma_create_qp", id, domain, attributes);
}

EGRET_EXPORT int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const int got = call_unless(Call::kCmGetEvent, "rdma_get_cm_event", channel, event);
  if (got != 0) {
    const int why = errno;
    if (why == EAGAIN && tell_listener(channel, event)) return 0;
    errno = why;
    return got;
  }
  if (!is_for_deaf_listener(channel, **event)) return 0;
  rdma_cm_id* const asking = (*event)->id;
  behind<int(rdma_cm_event*)>("rdma_ack_cm_event")(*event);
  behind<int(rdma_cm_id*)>("rdma_destroy_id")(asking);
  errno = EAGAIN;
  return -1;
}

EGRET_EXPORT int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event != told_event()) return behind<int(rdma_cm_event*)>("rdma_ack_cm_event")(event);
  return 0;
}

EGRET_EXPORT int rdma_disconnect(rdma_cm_id* id) {
  return call_unless(Call::kCmDisconnect, "rdma_disconnect", id);
}
