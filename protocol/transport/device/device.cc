#include "transport/device/device.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/local/helper_threads.h"

namespace egret::transport::device {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

struct All {
  std::mutex mutex;
  std::map<const ibv_context*, std::weak_ptr<Device>> of;
};
All& all() {
  static auto* const instance = new All;
  return *instance;
}

// The descriptors of a context become those of a file that says nothing. Whoever closes the context closes these.
void close_descriptors(const ibv_context& context) {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.is_open()) return;
  ::dup3(nothing.get(), context.async_fd, O_CLOEXEC);
  ::dup3(nothing.get(), context.cmd_fd, O_CLOEXEC);
}

}  // namespace

void set_handler(rdma_cm_id& id, CmHandler* handler) {
  std::atomic_ref<void*>(id.context).store(handler, std::memory_order_release);
}

CmHandler* handler_of(const rdma_cm_id& id) {
  auto& context = const_cast<rdma_cm_id&>(id).context;  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
  return static_cast<CmHandler*>(std::atomic_ref<void*>(context).load(std::memory_order_acquire));
}

Expected<std::shared_ptr<Device>> Device::of(const rdma_cm_id& id) {
  const std::scoped_lock held(all().mutex);
  std::weak_ptr<Device>& known = all().of[id.verbs];
  if (auto there = known.lock(); there != nullptr) return there;
  auto made = std::make_shared<Device>(id.verbs);
  if (Status begun = made->begin(id); !begun) return begun;
  known = made;
  return made;
}

Status Device::begin(const rdma_cm_id& user) {
  if (const int error = ::ibv_query_device(context_, &limits_); error != 0) {
    return Status::system_error("ibv_query_device", error);
  }
  if (Status anchored = anchor(user); !anchored) return anchored;
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.is_open()) return Status::system_error("eventfd", errno);
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  if (flags < 0 || ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return Status::system_error("cannot watch the device's events", errno);
  }
  if (!base::may_start_helper_threads())
    return Status::ok();  // what the device says shows as ops that are not answered
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    return Status::system_error("cannot watch the device's events", failed.code().value());
  }
  ::pthread_setname_np(thread_.native_handle(), "device-events");
  return Status::ok();
}

// At the address of this host by which `user` came to the device, at a port that nobody asks for.
Status Device::anchor(const rdma_cm_id& user) {
  if (::rdma_create_id(user.channel, &anchor_, static_cast<CmHandler*>(this), RDMA_PS_TCP) != 0) {
    anchor_ = nullptr;
    return Status::system_error("rdma_create_id", errno);
  }
  sockaddr_storage at{};
  std::memcpy(&at, &user.route.addr.src_storage, sizeof at);
  if (at.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(at).sin_port = 0;
  if (at.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(at).sin6_port = 0;
  if (::rdma_bind_addr(anchor_, reinterpret_cast<sockaddr*>(&at)) != 0) {
    return Status::system_error("rdma_bind_addr", errno);
  }
  if (anchor_->verbs != context_) return Status::error("the device is gone already");
  return Status::ok();
}

Device::~Device() {
  if (stop_.is_open()) ::eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) thread_.join();
  // While the anchor is there, librdmacm does not close the context by itself.
  if (is_gone()) close_descriptors(*context_);
  if (anchor_ != nullptr) ::rdma_destroy_id(anchor_);
}

void Device::on_cm_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) be_gone();
}

void Device::be_gone() {
  if (!is_gone_.exchange(true, std::memory_order_acq_rel)) raise(Alarm::kRemoved, nullptr, nullptr);
}

// --- its asynchronous events

void Device::run() {
  std::array<pollfd, 2> ready{{{.fd = context_->async_fd, .events = POLLIN, .revents = 0},
                               {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (::poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (ready[1].revents != 0) return;
    ibv_async_event event{};
    while (::ibv_get_async_event(context_, &event) == 0) {
      take(event);
      ::ibv_ack_async_event(&event);  // whoever destroys what it concerns waits for this
    }
    // A device that was taken away and has told all has nothing to tell any more.
    if ((ready[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) ready[0].fd = -1;
  }
}

void Device::take(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
      return raise(event.event_type, nullptr, nullptr);
    case IBV_EVENT_CQ_ERR:
      return raise(event.event_type, event.element.cq, nullptr);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return raise(event.event_type, nullptr, event.element.qp);
    default:
      return;
  }
}

// Neither queue nor pair: all are concerned.
void Device::raise(int event, const ibv_cq* queue, const ibv_qp* pair) {
  const std::scoped_lock held(mutex_);
  for (Alarm* alarm : alarms_) {
    if (!alarm->concerns(queue, pair)) continue;
    alarm->event_.store(event, std::memory_order_release);
    alarm->told_->notify();
  }
}

void Device::add(Alarm* alarm) {
  const std::scoped_lock held(mutex_);
  alarms_.push_back(alarm);
  if (!is_gone()) return;
  alarm->event_.store(Alarm::kRemoved, std::memory_order_release);
  alarm->told_->notify();
}

void Device::remove(const Alarm* alarm) {
  const std::scoped_lock held(mutex_);
  std::erase(alarms_, alarm);
}

// --- what hears of them

void Alarm::begin(std::shared_ptr<Device> device, std::shared_ptr<const Notifier> told) {
  told_ = std::move(told);
  device_ = std::move(device);
  device_->add(this);
}

void Alarm::watch(const ibv_cq* queue) {
  const std::scoped_lock held(device_->mutex_);
  queues_.push_back(queue);
}

void Alarm::watch(const ibv_qp* pair) {
  const std::scoped_lock held(device_->mutex_);
  pairs_.push_back(pair);
  queues_.push_back(pair->send_cq);
}

void Alarm::end() {
  if (device_ == nullptr) return;
  device_->remove(this);
  device_.reset();
}

bool Alarm::concerns(const ibv_cq* queue, const ibv_qp* pair) const {
  if (queue != nullptr) return std::ranges::find(queues_, queue) != queues_.end();
  if (pair != nullptr) return std::ranges::find(pairs_, pair) != pairs_.end();
  return true;
}

Status Alarm::status() const {
  const int event = event_.load(std::memory_order_acquire);
  if (event == kNothing) return Status::ok();
  if (event == kRemoved) return Status::error("the RDMA device is gone");
  return Status::error(std::string("the device says: ") + ::ibv_event_type_str(static_cast<ibv_event_type>(event)));
}

}  // namespace egret::transport::device
