#include "setup/setup_threads.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/eventfd.h>

#include "base/unique_fd.h"
#include "setup/completions.h"

namespace egret::backend {

namespace {

constexpr size_t kFewest = 2;
constexpr size_t kMost = 8;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

struct SetupThreads::Shared {
  struct Queued {
    Kind kind;
    uint64_t number;
    Work work;
  };

  explicit Shared(size_t wanted_threads) : wanted(wanted_threads), readable(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!readable.is_open()) throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  bool is_empty() const { return queues[0].empty() && queues[1].empty(); }
  std::deque<Queued>& queue_of(Kind kind) { return queues[static_cast<size_t>(kind)]; }
  Queued next();
  void start_threads();
  void run();
  void work_on(Queued queued, std::unique_lock<std::mutex>& lock);

  const size_t wanted;
  const base::UniqueFd readable;
  mutable std::mutex mutex;
  std::condition_variable changed;           // queues or is_ending
  std::array<std::deque<Queued>, 2> queues;  // by kind
  Kind turn = Kind::kMake;                   // whose turn it is
  std::deque<Done> done;
  bool is_ending = false;
  Completions made;
  std::vector<std::thread> threads;  // the owner's
};

SetupThreads::SetupThreads(size_t threads) : shared_(std::make_unique<Shared>(std::max<size_t>(threads, 1))) {}

SetupThreads::~SetupThreads() {
  {
    const std::scoped_lock held(shared_->mutex);
    shared_->is_ending = true;
    for (auto& queue : shared_->queues) queue.clear();
  }
  shared_->changed.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

int SetupThreads::fd() const {
  return shared_->readable.get();
}

void SetupThreads::submit(Kind kind, uint64_t number, Work work) {
  Shared& shared = *shared_;
  if (shared.threads.size() < shared.wanted) shared.start_threads();
  std::unique_lock lock(shared.mutex);
  if (shared.threads.empty()) return shared.work_on({kind, number, std::move(work)}, lock);
  shared.queue_of(kind).push_back({kind, number, std::move(work)});
  lock.unlock();
  shared.changed.notify_one();
}

bool SetupThreads::withdraw(uint64_t number) {
  Work destroyed;  // after the lock is let go
  const std::scoped_lock held(shared_->mutex);
  for (auto& queue : shared_->queues) {
    const auto at = std::ranges::find(queue, number, &Shared::Queued::number);
    if (at == queue.end()) continue;
    destroyed = std::move(at->work);
    queue.erase(at);
    return true;
  }
  return false;
}

bool SetupThreads::take(Done& done) {
  const std::scoped_lock held(shared_->mutex);
  if (shared_->done.empty()) {
    eventfd_t unused = 0;
    ::eventfd_read(shared_->readable.get(), &unused);
    return false;
  }
  done = std::move(shared_->done.front());
  shared_->done.pop_front();
  return true;
}

size_t SetupThreads::waiting(Kind kind) const {
  const std::scoped_lock held(shared_->mutex);
  return shared_->queue_of(kind).size();
}

// There is one.
SetupThreads::Shared::Queued SetupThreads::Shared::next() {
  if (queue_of(turn).empty()) turn = turn == Kind::kMake ? Kind::kEnd : Kind::kMake;
  Queued chosen = std::move(queue_of(turn).front());
  queue_of(turn).pop_front();
  turn = turn == Kind::kMake ? Kind::kEnd : Kind::kMake;
  return chosen;
}

// As many as there are, if the system gives fewer.
void SetupThreads::Shared::start_threads() {
  try {
    while (threads.size() < wanted) {
      threads.emplace_back([this] { run(); });
      ::pthread_setname_np(threads.back().native_handle(), "set-up");
    }
  } catch (const std::system_error&) {
  }
}

void SetupThreads::Shared::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return is_ending || !is_empty(); });
    if (is_empty()) return;
    work_on(next(), lock);
  }
}

// `lock` is held, but while it works.
void SetupThreads::Shared::work_on(Queued queued, std::unique_lock<std::mutex>& lock) {
  const uint64_t begun_ns = now_ns();
  lock.unlock();
  Done finished{.number = queued.number, .status = queued.work()};
  queued.work = {};
  lock.lock();
  const uint64_t done_ns = now_ns();
  finished.took_ns = done_ns - begun_ns;
  if (queued.kind == Kind::kMake) finished.interval_ns = made.interval_ns(begun_ns, done_ns);
  done.push_back(std::move(finished));
  ::eventfd_write(readable.get(), 1);
}

size_t setup_threads_for(size_t cpus) {
  return std::clamp(cpus, kFewest, kMost);
}

}  // namespace egret::backend
