// The process's table of names, its listeners, and pairs.
#include "transport/local/local.h"

#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "transport/local/endpoints.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

// Connections that nobody has accepted yet. Shared by the table and the listener; any thread.
class Queue {
 public:
  Status open() {
    waiting_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
    return waiting_.is_open() ? Status::ok() : Status::system_error("eventfd", errno);
  }
  // Readable while somebody waits.
  int fd() const { return waiting_.get(); }
  void push(std::unique_ptr<ServerEndpoint> endpoint) {
    const std::lock_guard lock(mutex_);
    endpoints_.push_back(std::move(endpoint));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(waiting_.get(), &one, sizeof one);
  }
  std::unique_ptr<ServerEndpoint> pop() {
    const std::lock_guard lock(mutex_);
    if (endpoints_.empty()) return nullptr;
    uint64_t taken = 0;
    [[maybe_unused]] const ssize_t got = ::read(waiting_.get(), &taken, sizeof taken);
    auto first = std::move(endpoints_.front());
    endpoints_.pop_front();
    return first;
  }

 private:
  UniqueFd waiting_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<ServerEndpoint>> endpoints_;
};

class Names {
 public:
  bool add(const std::string& name, const std::shared_ptr<Queue>& queue) {
    const std::lock_guard lock(mutex_);
    return queues_.try_emplace(name, queue).second;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    queues_.erase(name);
  }
  std::shared_ptr<Queue> find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto at = queues_.find(name);
    return at != queues_.end() ? at->second : nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Queue>> queues_;
};

Names& names() {
  static Names all;
  return all;
}

class LocalListener final : public Listener {
 public:
  LocalListener(std::string name, std::shared_ptr<Queue> queue) : name_(std::move(name)), queue_(std::move(queue)) {}
  ~LocalListener() override { names().remove(name_); }

  // Whoever connects is this process itself: nobody is asked.
  void set_doorkeeper(Doorkeeper*) override {}
  int fd() const override { return queue_->fd(); }
  Expected<std::unique_ptr<ServerEndpoint>> accept() override { return queue_->pop(); }
  bool needs_pause() const override { return false; }

 private:
  const std::string name_;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace

Expected<LocalPair> make_local_pair(int home) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return Status::system_error("socketpair", errno);
  }
  UniqueFd of_server(ends[0]), of_client(ends[1]);
  const auto link = std::make_shared<local::Link>(home);
  return LocalPair{.server = std::make_unique<local::LocalServerEndpoint>(std::move(of_server), link),
                   .client = std::make_unique<local::LocalClientEndpoint>(std::move(of_client), link)};
}

Expected<std::unique_ptr<Listener>> local_listen(const std::string& name) {
  auto queue = std::make_shared<Queue>();
  if (Status opened = queue->open(); !opened) return opened;
  if (!names().add(name, queue)) return Status::error("local:" + name + " is in use by this process");
  return std::unique_ptr<Listener>(std::make_unique<LocalListener>(name, std::move(queue)));
}

Expected<std::unique_ptr<ClientEndpoint>> local_connect(const std::string& name, int home) {
  const std::shared_ptr<Queue> queue = names().find(name);
  if (queue == nullptr) return Status::error("nobody in this process listens on local:" + name);
  auto pair = make_local_pair(home);
  if (!pair) return pair.status();
  queue->push(std::move(pair.value().server));
  return std::move(pair.value().client);
}

}  // namespace egret::transport
