#include "transport/device/alarm.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "base/local/helper_threads.h"

namespace egret::transport::device {

using base::Status;

// The asynchronous events of one device. Thread-safe.
class DeviceEvents {
 public:
  // That of the device; made if it has none. Null: errno.
  static std::shared_ptr<DeviceEvents> of(ibv_context* device);

  explicit DeviceEvents(ibv_context* device) : device_(device) {}
  ~DeviceEvents() {
    ::eventfd_write(stop_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }
  DeviceEvents(const DeviceEvents&) = delete;
  DeviceEvents& operator=(const DeviceEvents&) = delete;

  void add(Alarm* alarm) {
    const std::scoped_lock held(mutex_);
    alarms_.push_back(alarm);
  }
  void remove(const Alarm* alarm) {
    const std::scoped_lock held(mutex_);
    std::erase(alarms_, alarm);
  }

 private:
  bool start();
  void run();
  void take(const ibv_async_event& event);
  void raise(const ibv_cq* queue, ibv_event_type type);

  ibv_context* const device_;
  base::UniqueFd stop_;
  std::mutex mutex_;
  std::vector<Alarm*> alarms_;
  std::thread thread_;
};

namespace {

struct All {
  std::mutex mutex;
  std::map<const ibv_context*, std::weak_ptr<DeviceEvents>> of;
};
All& all() {
  static auto* const instance = new All;
  return *instance;
}

}  // namespace

std::shared_ptr<DeviceEvents> DeviceEvents::of(ibv_context* device) {
  const std::scoped_lock held(all().mutex);
  std::weak_ptr<DeviceEvents>& known = all().of[device];
  if (auto there = known.lock(); there != nullptr) return there;
  auto made = std::make_shared<DeviceEvents>(device);
  if (!made->start()) return nullptr;
  known = made;
  return made;
}

bool DeviceEvents::start() {
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int flags = ::fcntl(device_->async_fd, F_GETFL);
  if (!stop_.is_open() || flags < 0 || ::fcntl(device_->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) return false;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    errno = failed.code().value();
    return false;
  }
  ::pthread_setname_np(thread_.native_handle(), "device-events");
  return true;
}

void DeviceEvents::run() {
  std::array<pollfd, 2> ready{
      {{.fd = device_->async_fd, .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (::poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (ready[1].revents != 0) return;
    ibv_async_event event{};
    while (::ibv_get_async_event(device_, &event) == 0) {
      take(event);
      ::ibv_ack_async_event(&event);  // whoever destroys what it concerns waits for this
    }
    // A device that was taken away and has told all has nothing to tell any more.
    if ((ready[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) ready[0].fd = -1;
  }
}

void DeviceEvents::take(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
      return raise(nullptr, event.event_type);
    case IBV_EVENT_CQ_ERR:
      return raise(event.element.cq, event.event_type);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return raise(event.element.qp->send_cq, event.event_type);
    default:
      return;
  }
}

// `queue`: null, all are concerned.
void DeviceEvents::raise(const ibv_cq* queue, ibv_event_type type) {
  const std::scoped_lock held(mutex_);
  for (Alarm* alarm : alarms_) {
    if (queue != nullptr && alarm->queue_ != queue) continue;
    alarm->event_.store(type, std::memory_order_release);
    ::eventfd_write(alarm->fd_.get(), 1);
  }
}

// --- a session's

Alarm::~Alarm() {
  if (events_ != nullptr) events_->remove(this);
}

Status Alarm::begin(ibv_context* device, const ibv_cq* queue) {
  fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd_.is_open()) return Status::system_error("eventfd", errno);
  queue_ = queue;
  if (!base::may_start_helper_threads())
    return Status::ok();  // what the device says shows as ops that are not answered
  events_ = DeviceEvents::of(device);
  if (events_ == nullptr) return Status::system_error("cannot watch the device's events", errno);
  events_->add(this);
  return Status::ok();
}

Status Alarm::status() const {
  const int event = event_.load(std::memory_order_acquire);
  if (event < 0) return Status::ok();
  return Status::error(std::string("the device says: ") + ::ibv_event_type_str(static_cast<ibv_event_type>(event)));
}

}  // namespace egret::transport::device
