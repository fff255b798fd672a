#include "transport/mixed/mixed_listener.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

constexpr int kFirstPauseMs = 20;  // of a half; each one after it is twice as long

struct Half {
  std::string address;
  std::unique_ptr<Listener> listener{};  // null: it could not be listened at yet
  UniqueFd timer{};                      // readable: its pause is over
  bool is_paused = false;
  int pause_ms = 0;       // the last one; 0: there was none since it went well
  std::string trouble{};  // that was told; empty: it goes well
};

class MixedListener final : public Listener {
 public:
  MixedListener(const std::string& rdma, const std::string& tcp, ListenOptions options, ListenAt listen_at)
      : options_(std::move(options)), listen_at_(listen_at), rdma_{.address = rdma}, tcp_{.address = tcp} {}

  Status open() {
    ready_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!ready_.is_open()) return Status::system_error("epoll_create1", errno);
    for (Half* half : {&rdma_, &tcp_}) {
      half->timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
      if (!half->timer.is_open()) return Status::system_error("timerfd_create", errno);
      if (Status watched = watch(half->timer.get()); !watched) return watched;
    }
    if (Status listening = listen(tcp_); !listening) return listening;
    if (!listen(rdma_)) pause(rdma_, 1);  // accept() tries it again, and tells why it cannot be had
    return Status::ok();
  }

  int fd() const override { return ready_.get(); }
  bool needs_pause() const override { return false; }  // each half has its own
  void set_doorkeeper(Doorkeeper* doorkeeper) override {
    doorkeeper_ = doorkeeper;
    for (Half* half : {&rdma_, &tcp_}) {
      if (half->listener != nullptr) half->listener->set_doorkeeper(doorkeeper);
    }
  }

  void offer(const TlsOffer& tls) override {
    options_.tls = tls;
    if (tcp_.listener != nullptr) tcp_.listener->offer(tls);
  }

  Expected<std::unique_ptr<ServerEndpoint>> accept() override {
    end_pause(rdma_);
    end_pause(tcp_);
    is_rdma_first_ = !is_rdma_first_;  // so that a storm of one kind does not keep out the other
    auto accepted = accept_at(is_rdma_first_ ? rdma_ : tcp_);
    if (accepted && accepted.value() == nullptr) accepted = accept_at(is_rdma_first_ ? tcp_ : rdma_);
    if (accepted && accepted.value() == nullptr && !news_.empty()) return Status::error(std::exchange(news_, {}));
    return accepted;
  }

 private:
  Status watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return Status::system_error("epoll_ctl", errno);
    return Status::ok();
  }

  Status listen(Half& half) {
    auto listening = listen_at_(half.address, options_);
    if (!listening) return listening.status();
    if (Status watched = watch(listening.value()->fd()); !watched) return watched;
    listening.value()->set_doorkeeper(doorkeeper_);
    half.listener = std::move(listening.value());
    return Status::ok();
  }

  void pause(Half& half, int ms) {
    if (half.listener != nullptr) ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, half.listener->fd(), nullptr);
    half.is_paused = true;
    itimerspec at{};
    at.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L};
    ::timerfd_settime(half.timer.get(), 0, &at, nullptr);
  }
  void end_pause(Half& half) {
    uint64_t count = 0;
    if (!half.is_paused || ::read(half.timer.get(), &count, sizeof count) != sizeof count) return;
    half.is_paused = half.listener != nullptr && !watch(half.listener->fd());
    if (half.is_paused) pause(half, kFirstPauseMs);
  }

  Expected<std::unique_ptr<ServerEndpoint>> accept_at(Half& half) {
    if (half.is_paused) return std::unique_ptr<ServerEndpoint>();
    if (half.listener == nullptr) {
      if (Status listening = listen(half); !listening) return fail(half, listening.message());
    }
    auto accepted = half.listener->accept();
    if (!accepted) return half.listener->needs_pause() ? fail(half, accepted.message()) : std::move(accepted);
    if (!std::exchange(half.trouble, {}).empty()) news_ = half.address + " accepts connections again";
    half.pause_ms = 0;
    return accepted;
  }

  // It is tried again after a pause. The same trouble is told once.
  Expected<std::unique_ptr<ServerEndpoint>> fail(Half& half, const std::string& why) {
    half.pause_ms = std::clamp(2 * half.pause_ms, kFirstPauseMs, kListenRetryMs);
    pause(half, half.pause_ms);
    if (half.trouble == why) return std::unique_ptr<ServerEndpoint>();
    half.trouble = why;
    const Half& other = &half == &rdma_ ? tcp_ : rdma_;
    return Status::error(why + "; meanwhile proxies are served at " + other.address);
  }

  ListenOptions options_;
  const ListenAt listen_at_;
  Doorkeeper* doorkeeper_ = nullptr;
  UniqueFd ready_;  // readable when a half is, or its timer
  Half rdma_, tcp_;
  bool is_rdma_first_ = false;
  std::string news_;  // not told yet
};

}  // namespace

Expected<std::unique_ptr<Listener>> listen_at_both(const std::string& rdma, const std::string& tcp,
                                                   const ListenOptions& options, ListenAt listen_at) {
  auto listener = std::make_unique<MixedListener>(rdma, tcp, options, listen_at);
  if (Status listening = listener->open(); !listening) return listening;
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace egret::transport
