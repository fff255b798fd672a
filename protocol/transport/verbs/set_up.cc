#include "transport/verbs/set_up.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <future>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/local/helper_threads.h"

namespace egret::transport::verbs {

using base::Expected;
using base::Status;
using device::CmHandler;
using device::Notifier;

namespace {
constexpr int kEventsAtOnce = 64;  // before tasks have their turn
// The process in which librdmacm was first used. It keeps a device open as long as the process lives: a child would use its
// parent's open files, which the kernel's rdma_cm refuses.
std::atomic<pid_t> user_of_device{0};
constexpr const char* kOfParent =
    "rdma was used before this process was forked, and a device serves one process: connect after the fork only, or "
    "reach the backend through egret-proxy";
}  // namespace

struct SetUp::Shared {
  explicit Shared(std::shared_ptr<Notifier> made) : notifier(std::move(made)) {}

  void run();
  bool run_tasks();
  void run_tasks_here();
  void run_beginning();
  void take_events(rdma_event_channel& from) const;

  const std::shared_ptr<Notifier> notifier;
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::vector<Task> tasks;
  std::deque<Task> beginnings;
  bool is_stopping = false;
  bool has_thread = true;
  bool is_running = false;  // tasks, on a caller's thread
  EventChannel channel;     // made once; ids are destroyed before it
};

Expected<std::shared_ptr<SetUp>> SetUp::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<SetUp> known;
  const std::scoped_lock held(mutex);
  const pid_t self = ::getpid();
  if (user_of_device != 0 && user_of_device != self) return Status::error(kOfParent);
  if (auto there = known.lock(); there != nullptr && there->shared_->process == self) return there;
  auto notifier = Notifier::make();
  if (!notifier) return notifier.status();
  auto shared = std::make_shared<Shared>(notifier.value());
  std::shared_ptr<SetUp> made(new SetUp(shared));
  known = made;
  shared->has_thread = base::may_start_helper_threads();
  if (!shared->has_thread) return made;
  try {
    made->thread_ = std::thread([shared] { shared->run(); });
  } catch (const std::system_error& failed) {
    known.reset();
    return Status::system_error("cannot start a thread for set-up", failed.code().value());
  }
  ::pthread_setname_np(made->thread_.native_handle(), "set-up");
  return made;
}

SetUp::~SetUp() {
  if (!shared_->has_thread) {
    shared_->run_tasks_here();
    return;
  }
  {
    const std::scoped_lock held(shared_->mutex);
    shared_->is_stopping = true;
  }
  shared_->notifier->notify();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void SetUp::post(Task task) {
  {
    const std::scoped_lock held(shared_->mutex);
    shared_->tasks.push_back(std::move(task));
  }
  if (!shared_->has_thread) return shared_->run_tasks_here();
  shared_->notifier->notify();
}

void SetUp::post_beginning(Task task) {
  if (!shared_->has_thread) return post(std::move(task));  // whoever begins waits for it in any case
  {
    const std::scoped_lock held(shared_->mutex);
    shared_->beginnings.push_back(std::move(task));
  }
  shared_->notifier->notify();
}

void SetUp::wait() {
  std::promise<void> all_has_run;
  post([&] { all_has_run.set_value(); });
  all_has_run.get_future().wait();
}

Expected<rdma_event_channel*> SetUp::channel() {
  const std::scoped_lock held(shared_->mutex);
  if (shared_->channel == nullptr) {
    auto made = make_event_channel();
    if (!made) return made.status();
    shared_->channel = std::move(made.value());
    user_of_device = shared_->process;
    shared_->notifier->notify();
  }
  return shared_->channel.get();
}

void SetUp::take_turn() {
  rdma_event_channel* events = nullptr;
  {
    const std::scoped_lock held(shared_->mutex);
    if (shared_->has_thread || shared_->is_running || shared_->channel == nullptr) return;
    shared_->is_running = true;
    events = shared_->channel.get();
  }
  shared_->take_events(*events);
  {
    const std::scoped_lock held(shared_->mutex);
    shared_->is_running = false;
  }
  shared_->run_tasks_here();
}

// Unless another thread runs them already, or the task that posts: these will take them.
void SetUp::Shared::run_tasks_here() {
  std::unique_lock held(mutex);
  if (is_running) return;
  is_running = true;
  while (!tasks.empty()) {
    Task task = std::move(tasks.front());
    tasks.erase(tasks.begin());
    held.unlock();
    task();
    task = nullptr;  // what it owns goes now
    held.lock();
  }
  is_running = false;
}

void SetUp::Shared::run() {
  while (true) {
    notifier->reset();
    const bool has_worked = run_tasks();
    rdma_event_channel* events = nullptr;
    bool has_more = has_worked;
    {
      const std::scoped_lock held(mutex);
      has_more |= !tasks.empty() || !beginnings.empty();
      if (is_stopping && !has_more) return;
      events = channel.get();
    }
    std::array<pollfd, 2> ready{{{.fd = notifier->fd(), .events = POLLIN, .revents = 0},
                                 {.fd = events != nullptr ? events->fd : -1, .events = POLLIN, .revents = 0}}};
    const int count = ::poll(ready.data(), ready.size(), has_more ? 0 : -1);
    if (count < 0) continue;  // a signal
    if (ready[1].revents != 0) take_events(*events);
    if (count == 0 && !has_worked) run_beginning();
  }
}

// False: there was none.
bool SetUp::Shared::run_tasks() {
  std::vector<Task> now;
  {
    const std::scoped_lock held(mutex);
    now.swap(tasks);
  }
  for (Task& task : now) {
    task();
    task = nullptr;  // what it owns goes now, not with those after it
  }
  return !now.empty();
}

void SetUp::Shared::run_beginning() {
  Task next;
  {
    const std::scoped_lock held(mutex);
    if (beginnings.empty()) return;
    next = std::move(beginnings.front());
    beginnings.pop_front();
  }
  next();
}

void SetUp::Shared::take_events(rdma_event_channel& from) const {
  rdma_cm_event* event = nullptr;
  for (int taken = 0; taken < kEventsAtOnce && ::rdma_get_cm_event(&from, &event) == 0; ++taken) {
    if (CmHandler* const handler = device::handler_of(*event->id)) handler->on_cm_event(*event);
    ::rdma_ack_cm_event(event);
  }
}

}  // namespace egret::transport::verbs
