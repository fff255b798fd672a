// What a thread's completion queues do about what other threads have changed, before it sleeps. The device is this file's: the verbs
// that a queue needs are defined here, and take the place of the library's.
#include <atomic>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/verbs/queues.h"

using namespace egret::transport;
using namespace egret::transport::verbs;

namespace {

constexpr uint32_t kEntries = 8;   // of one queue pair
constexpr int kPairsOfAQueue = 4;  // for which the first queue has room
constexpr int kMostEntries = 1024;
std::atomic<int> queues_there{0};

int nothing_has_come(ibv_cq* /*queue*/, int /*most*/, ibv_wc* /*completions*/) {
  return 0;
}

int asked_for_events(ibv_cq* /*queue*/, int /*solicited_only*/) {
  return 0;
}

ibv_context* fake_device() {
  static ibv_context context = [] {
    ibv_context made{};
    made.num_comp_vectors = 1;
    made.async_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    made.ops.poll_cq = nothing_has_come;
    made.ops.req_notify_cq = asked_for_events;
    return made;
  }();
  return &context;
}

std::shared_ptr<device::Device> device_that_is_up() {
  rdma_cm_id user{};
  user.verbs = fake_device();
  auto up = device::Device::of(user);
  REQUIRE(up);
  return up.value();
}

struct FakeThread {
  std::shared_ptr<device::Device> device = device_that_is_up();
  std::shared_ptr<SharedQueues> queues;
  std::shared_ptr<SetUp> set_up;

  FakeThread() {
    auto made = SharedQueues::make();
    REQUIRE(made);
    queues = made.value();
    auto there = queues->set_up();
    REQUIRE(there);
    set_up = there.value();
  }

  SharedQueues::Room room() {
    auto made = SharedQueues::room(queues, device, kEntries, 0);
    REQUIRE(made);
    return std::move(made.value());
  }

  bool is_woken() const {
    pollfd woken{.fd = queues->fd(), .events = POLLIN, .revents = 0};
    return ::poll(&woken, 1, 0) > 0;
  }

  // Rounds, until one finds nothing, and nothing wakes the thread from the sleep after it.
  void run_until_asleep() {
    while (true) {
      if (is_woken()) queues->ready();
      queues->arm();
      if (!queues->poll() && !is_woken()) return;
    }
  }
};

}  // namespace

extern "C" {

int ibv_query_device(ibv_context* /*context*/, ibv_device_attr* limits) {
  *limits = {};
  limits->max_cqe = kMostEntries;
  return 0;
}

int ibv_get_async_event(ibv_context* /*context*/, ibv_async_event* /*event*/) {
  return -1;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space /*space*/) {
  *id = new rdma_cm_id{};
  (*id)->verbs = fake_device();
  (*id)->channel = channel;
  (*id)->context = context;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* /*id*/, sockaddr* /*address*/) {
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  delete id;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new ibv_comp_channel{.context = context, .fd = ::eventfd(0, EFD_NONBLOCK), .refcnt = 0};
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete channel;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int /*vector*/) {
  auto* const made = new ibv_cq{};
  made->context = context;
  made->channel = channel;
  made->cq_context = owner;
  made->cqe = entries;
  ++queues_there;
  return made;
}

int ibv_destroy_cq(ibv_cq* queue) {
  delete queue;
  --queues_there;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* /*channel*/, ibv_cq** /*queue*/, void** /*owner*/) {
  return -1;
}

}  // extern "C"

TEST_CASE(
    "one completion queue is left when every queue pair is gone, although the thread went to sleep as soon as it "
    "could") {
  FakeThread thread;
  std::vector<SharedQueues::Room> rooms;
  rooms.reserve(kPairsOfAQueue + 1);
  for (int i = 0; i < kPairsOfAQueue + 1; ++i) rooms.push_back(thread.room());
  CHECK(queues_there == 2);
  thread.run_until_asleep();
  rooms.clear();
  thread.run_until_asleep();
  thread.set_up->wait();
  CHECK(queues_there == 1);
  thread.queues.reset();
  CHECK(queues_there == 0);
}

TEST_CASE("a thread looks once more before it sleeps, if something has changed since it armed") {
  FakeThread thread;
  const SharedQueues::Room first = thread.room();
  std::vector<SharedQueues::Room> others;
  others.reserve(kPairsOfAQueue);
  thread.run_until_asleep();
  thread.queues->arm();
  const auto unchanged = [&] { return !thread.queues->poll(); };
  CHECK(unchanged());
  thread.queues->arm();
  SUBCASE("a queue that is not armed yet") {
    for (int i = 0; i < kPairsOfAQueue; ++i) others.push_back(thread.room());
    CHECK_FALSE(unchanged());
  }
  SUBCASE("a session that any completion is to wake") {
    thread.queues->want_any(true);
    thread.queues->wake();
    CHECK_FALSE(unchanged());
  }
  thread.queues->arm();
  CHECK(unchanged());
}
