// A device that is in use: what all its sessions of this process share, whether it still works, and when it must be let go
// of.
//
//   of(id) ─▶ shared ─ rdma_cm: "it is taken away" ─▶ gone: every Alarm rings ─ the last user lets go ─▶ its context is closed
//                    └ asynchronous event ─▶ the Alarms that it concerns
//
// A failure of the device concerns all of its sessions, one of a queue those that use it: completions may never come, so
// they are to end now. A port that is down concerns nobody: it may come back before anybody's retries end.
//
// librdmacm has each device open once. When one is taken away, it closes it as soon as no ids are on it, and tells nobody. An id of our
// own on the device, which is used for nothing else, keeps it open for completion queues that outlive the ids of sessions.
// When a device is taken away, the kernel waits with some (Soft-RoCE) until no process has them open, but librdmacm keeps
// the last device of a host open for ever: so the last user closes its descriptors.
//
// One thread for each device waits for its events. Cold path; thread-safe, but that an Alarm belongs to one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/device/notifier.h"

namespace egret::transport::device {

// Hears what rdma_cm says of an id: the id's context points to it.
class CmHandler {
 public:
  // On the thread that reads the id's channel. The event is acknowledged afterwards, so the id cannot be destroyed in it.
  virtual void on_cm_event(const rdma_cm_event& event) = 0;

 protected:
  ~CmHandler() = default;
};
// The context of an id may be changed while its channel is read.
void set_handler(rdma_cm_id& id, CmHandler* handler);
CmHandler* handler_of(const rdma_cm_id& id);

class Alarm;

class Device final : private CmHandler {
 public:
  // That of an id whose device is known.
  static base::Expected<std::shared_ptr<Device>> of(const rdma_cm_id& id);
  explicit Device(ibv_context* context) : context_(context) {}
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const { return context_; }
  const ibv_device_attr& limits() const { return limits_; }
  // rdma_cm has said that it is taken away: its sessions end, and nobody is to begin anything on it.
  void be_gone();
  bool is_gone() const { return is_gone_.load(std::memory_order_acquire); }

 private:
  friend class Alarm;

  base::Status begin(const rdma_cm_id& user);
  base::Status anchor(const rdma_cm_id& user);
  void on_cm_event(const rdma_cm_event& event) override;
  void add(Alarm* alarm);
  void remove(const Alarm* alarm);
  void run();
  void take(const ibv_async_event& event);
  void raise(int event, const ibv_cq* queue, const ibv_qp* pair);

  ibv_context* const context_;
  ibv_device_attr limits_{};
  rdma_cm_id* anchor_ = nullptr;
  std::atomic<bool> is_gone_{false};
  base::UniqueFd stop_;
  std::mutex mutex_;
  std::vector<Alarm*> alarms_;
  std::thread thread_;
};

// Hears that a device has failed, or that something of it has that it watches.
class Alarm {
 public:
  Alarm() = default;
  ~Alarm() { end(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // `told` is notified from the event on. It hears of the device alone, until it watches more.
  void begin(std::shared_ptr<Device> device, std::shared_ptr<const Notifier> told);
  void watch(const ibv_cq* queue);
  // Of the pair, and of the queue that it completes to.
  void watch(const ibv_qp* pair);
  // Before what it watches is destroyed.
  void end();
  // Ok, or an error that says what the device has told. Any thread.
  base::Status status() const;

 private:
  friend class Device;
  bool concerns(const ibv_cq* queue, const ibv_qp* pair) const;

  static constexpr int kNothing = -1, kRemoved = -2;

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Notifier> told_;
  std::vector<const ibv_cq*> queues_;  // these two: the device's mutex
  std::vector<const ibv_qp*> pairs_;
  std::atomic<int> event_{kNothing};  // else an ibv_event_type, or kRemoved
};

}  // namespace egret::transport::device
