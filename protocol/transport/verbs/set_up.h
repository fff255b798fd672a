// The thread of a process that hears what rdma_cm has to say, and on which calls are made that command a device and wait for
// it. A data thread never makes such a call: creating a queue pair, registering memory or connecting takes a card
// milliseconds.
//
//   any thread ─ post(task) ─▶ ┌───────────────┐ ─▶ what the task tells its owner (device/notifier.h)
//   rdma_cm ─ events of ids ─▶ │ set-up thread │ ─▶ the id's CmHandler
//                              └───────────────┘
//
// Tasks run in the order in which they were posted, but those that begin a session wait until there is nothing else to do: so
// that sessions are finished one after the other, and not all of them are half made when the first one's time is over. All ids of the process are on one event channel. The thread runs as
// long as somebody has a reference.
//
// In a process that lets its libraries start no thread (base/local/helper_threads.h) the callers do its work: a task runs within
// post(), and events are taken by take_turn(), when the channel is readable.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <rdma/rdma_cma.h>

#include "base/status.h"
#include "transport/device/device.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

class SetUp {
 public:
  // That of the process; made if there is none. An error: RDMA was used before this process was forked, so it may not use it.
  static base::Expected<std::shared_ptr<SetUp>> of_process();
  // By the last one that had a reference: what was posted runs first. On its own thread it does not wait for that.
  ~SetUp();
  SetUp(const SetUp&) = delete;
  SetUp& operator=(const SetUp&) = delete;

  using Task = std::function<void()>;
  void post(Task task);
  // One that begins something of which more is to come.
  void post_beginning(Task task);
  // Returns when all tasks have run that were posted before, but for those that begin something. Not on the thread itself.
  void wait();
  // Where ids are to be made. An error: there is no device, or this process may not use it; it may be asked again.
  base::Expected<rdma_event_channel*> channel();
  // Whether callers do the work.
  bool has_thread() const { return thread_.joinable(); }
  // Without a thread only: hands on what rdma_cm has to say.
  void take_turn();

 private:
  struct Shared;  // with the thread, which may end after this object
  explicit SetUp(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace egret::transport::verbs
