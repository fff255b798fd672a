#include "cm_events.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "async_events.h"

namespace egret::interposer {
namespace {

constexpr std::string_view kAddrChange = "addr_change:";

struct Plan {
  uint64_t after = 0;  // requests; 0: nothing is told
  uint64_t requests = 0;
  const rdma_event_channel* channel = nullptr;  // of the listener
  rdma_cm_id* listener = nullptr;               // the one that the last request was for
  const rdma_cm_id* deaf = nullptr;
  bool is_told = false;
  rdma_cm_event event{};
};

Plan read_plan() {
  Plan plan;
  const char* const text = std::getenv("EGRET_VERBS_EVENT");
  if (text == nullptr || is_async_event_planned()) return plan;
  const std::string_view all = text;
  const char* const end = all.data() + all.size();
  if (!all.starts_with(kAddrChange) || std::from_chars(all.data() + kAddrChange.size(), end, plan.after).ptr != end ||
      plan.after == 0) {
    std::fprintf(stderr, "libegret_count_verbs: EGRET_VERBS_EVENT=%s\n", text);
    _exit(70);
  }
  return plan;
}

Plan& plan() {
  static Plan read = read_plan();
  return read;
}

}  // namespace

bool tell_listener(const rdma_event_channel* channel, rdma_cm_event** event) {
  Plan& now = plan();
  if (now.after == 0 || now.is_told || now.requests < now.after || channel != now.channel) return false;
  now.is_told = true;
  now.deaf = now.listener;
  now.event.id = now.listener;
  now.event.event = RDMA_CM_EVENT_ADDR_CHANGE;
  *event = &now.event;
  return true;
}

bool is_for_deaf_listener(const rdma_event_channel* channel, const rdma_cm_event& event) {
  Plan& now = plan();
  if (now.after == 0 || event.event != RDMA_CM_EVENT_CONNECT_REQUEST) return false;
  if (event.listen_id == now.deaf) return true;
  ++now.requests;
  now.channel = channel;
  now.listener = event.listen_id;
  return false;
}

void listens(const rdma_cm_id* id) {
  if (plan().deaf == id) plan().deaf = nullptr;
}

const rdma_cm_event* told_event() {
  return &plan().event;
}

}  // namespace egret::interposer
