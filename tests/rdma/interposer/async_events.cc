#include "async_events.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace egret::interposer {
namespace {

struct Name {
  std::string_view name;
  ibv_event_type type;
};
constexpr std::array<Name, 3> kNames{
    {{"device_fatal:", IBV_EVENT_DEVICE_FATAL}, {"cq_err:", IBV_EVENT_CQ_ERR}, {"qp_fatal:", IBV_EVENT_QP_FATAL}}};

struct Plan {
  ibv_event_type type{};
  uint64_t after = 0;  // lists; 0: nothing is told
};

Plan read_plan() {
  Plan plan;
  const char* const text = std::getenv("EGRET_VERBS_EVENT");
  if (text == nullptr) return plan;
  const std::string_view all = text;
  for (const Name& each : kNames) {
    if (!all.starts_with(each.name)) continue;
    const std::string_view number = all.substr(each.name.size());
    plan.type = each.type;
    if (std::from_chars(number.data(), number.data() + number.size(), plan.after).ec != std::errc()) plan.after = 0;
  }
  return plan;
}
const Plan& plan() {
  static const Plan read = read_plan();
  return read;
}

// The one context that hears: a test has one device.
struct Told {
  std::mutex mutex;
  ibv_context* context = nullptr;
  int told_fd = -1;  // readable while ours is to be told
  bool is_due = false;
  ibv_async_event event{};
  std::atomic<uint64_t> posted{0};
};
Told& told() {
  static auto* const instance = new Told;
  return *instance;
}

// As poll(2); the context's own descriptor is readable, too, while ours is to be told. (It cannot be another one: the
// kernel is given it with each queue that is made.)
int poll_both(pollfd* polled, nfds_t count, int timeout_ms) {
  constexpr nfds_t kMost = 8;
  std::array<pollfd, kMost + 1> with_ours{};
  const timespec timeout{.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1'000'000L};
  const timespec* const until = timeout_ms < 0 ? nullptr : &timeout;
  pollfd* const end = polled + count;
  pollfd* device = end;
  if (is_async_event_planned() && count <= kMost) {
    const std::scoped_lock held(told().mutex);
    if (told().context != nullptr) {
      device = std::find_if(polled, end, [](const pollfd& each) { return each.fd == told().context->async_fd; });
      with_ours[count] = {.fd = told().told_fd, .events = POLLIN, .revents = 0};
    }
  }
  if (device == end) return ::ppoll(polled, count, until, nullptr);
  std::copy(polled, end, with_ours.begin());
  int ready = ::ppoll(with_ours.data(), count + 1, until, nullptr);
  for (nfds_t i = 0; i < count; ++i) polled[i].revents = with_ours[i].revents;
  if (ready > 0 && with_ours[count].revents != 0) {
    if (device->revents != 0) --ready;
    device->revents |= POLLIN;
  }
  return ready;
}

template <typename Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(dlvsym(RTLD_NEXT, name, "IBVERBS_1.1"));
}

}  // namespace

bool is_async_event_planned() {
  return plan().after != 0;
}

void hear_async_events(ibv_context* context) {
  if (context == nullptr || !is_async_event_planned()) return;
  const std::scoped_lock held(told().mutex);
  if (told().context != nullptr) return;
  told().context = context;
  if (told().told_fd < 0) told().told_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void forget_async_events(const ibv_context* context) {
  const std::scoped_lock held(told().mutex);
  if (told().context == context) told().context = nullptr;
}

void note_posted(ibv_qp* pair) {
  if (!is_async_event_planned() || ++told().posted != plan().after) return;
  const std::scoped_lock held(told().mutex);
  told().event.event_type = plan().type;
  if (plan().type == IBV_EVENT_CQ_ERR) told().event.element.cq = pair->send_cq;
  if (plan().type == IBV_EVENT_QP_FATAL) told().event.element.qp = pair;
  told().is_due = true;
  ::eventfd_write(told().told_fd, 1);
}

}  // namespace egret::interposer

using namespace egret::interposer;  // NOLINT(google-build-using-namespace): what follows is C's namespace

extern "C" __attribute__((visibility("default"))) int ibv_get_async_event(ibv_context* context,
                                                                          ibv_async_event* event) {
  {
    const std::scoped_lock held(told().mutex);
    if (told().context == context && std::exchange(told().is_due, false)) {
      eventfd_t ignored = 0;
      ::eventfd_read(told().told_fd, &ignored);
      *event = told().event;
      return 0;
    }
  }
  return behind<int(ibv_context*, ibv_async_event*)>("ibv_get_async_event")(context, event);
}

extern "C" __attribute__((visibility("default"))) int poll(pollfd* polled, nfds_t count, int timeout_ms) {
  return poll_both(polled, count, timeout_ms);
}
extern "C" __attribute__((visibility("default"))) int __poll_chk(pollfd* polled, nfds_t count, int timeout_ms, size_t) {
  return poll_both(polled, count, timeout_ms);
}

extern "C" __attribute__((visibility("default"))) void ibv_ack_async_event(ibv_async_event* event) {
  // Ours was counted by nobody.
  const bool is_ours = is_async_event_planned() && std::memcmp(event, &told().event, sizeof *event) == 0;
  if (!is_ours) behind<void(ibv_async_event*)>("ibv_ack_async_event")(event);
}
