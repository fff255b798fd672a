#include "proxy/frontend.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include <event2/event.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/notify.h"
#include "memcache/reply.h"
#include "proxy/credentials.h"

namespace egret::proxy {

using base::Status;
using base::UniqueFd;

namespace {
constexpr int kAcceptsPerEvent = 64;
constexpr timeval kAcceptPause{0, 100'000};  // when there are no descriptors left
constexpr int kSettleMilliseconds = 500;     // how long clients wait for the first sessions, at most
}  // namespace

void Frontend::EventDeleter::operator()(event* e) const {
  event_free(e);
}
void Frontend::EventDeleter::operator()(event_base* base) const {
  event_base_free(base);
}

Frontend::Frontend(const Config& config, const StatsSource& stats, std::vector<std::unique_ptr<Worker>>& workers,
                   base::Watchdog& watchdog)
    : config_(config), stats_(stats), workers_(workers), watchdog_(watchdog), base_(event_base_new()) {
  EGRET_CHECK(base_ != nullptr);
  rested_.reset(event_new(
      base_.get(), -1, 0, [](int, short, void* self) { static_cast<Frontend*>(self)->accept_again(); }, this));
  has_room_.reset(event_new(
      base_.get(), stats.gate.fd(), EV_READ,
      [](int, short, void* self) { static_cast<Frontend*>(self)->accept_again(); }, this));
  ping_.reset(event_new(
      base_.get(), -1, EV_PERSIST, [](int, short, void* self) { static_cast<Frontend*>(self)->ping_watchdog(); },
      this));
  EGRET_CHECK(rested_ != nullptr && has_room_ != nullptr && ping_ != nullptr);
}

Frontend::~Frontend() {
  for (const auto& listener : listeners_) listener->socket.close();
}

Status Frontend::listen(ListenSockets inherited) {
  const ListenRules rules{config_.unix_mode, static_cast<int>(config_.backlog)};
  auto opened = open_sockets(config_.listen, rules, inherited);
  if (!opened) return opened.status();
  for (ListenSocket& socket : opened.value()) add(std::move(socket));
  for (ListenSocket& socket : inherited) add(std::move(socket));
  return Status::ok();
}

void Frontend::add(ListenSocket socket) {
  auto listener = std::make_unique<Listener>();
  listener->frontend = this;
  listener->socket = std::move(socket);
  listener->acceptable.reset(event_new(
      base_.get(), listener->socket.fd.get(), EV_READ | EV_PERSIST,
      [](int, short, void* argument) {
        auto* at = static_cast<Listener*>(argument);
        at->frontend->on_acceptable(*at);
      },
      listener.get()));
  EGRET_CHECK(listener->acceptable != nullptr);
  listeners_.push_back(std::move(listener));
}

// The first clients should not be told of an error only because the sessions were not up yet.
void Frontend::wait_for_backends() {
  for (int waited = 0; waited < kSettleMilliseconds; ++waited) {
    bool settled = true;
    for (const auto& worker : workers_) settled &= worker->is_settled();
    if (settled) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Frontend::run() {
  const auto on_signal = [this](int number, void (*act)(int, short, void*)) {
    signals_.emplace_back(event_new(base_.get(), number, EV_SIGNAL | EV_PERSIST, act, this));
    EGRET_CHECK(signals_.back() != nullptr && event_add(signals_.back().get(), nullptr) == 0);
  };
  const auto stop = [](int, short, void* self) { event_base_loopbreak(static_cast<Frontend*>(self)->base_.get()); };
  on_signal(SIGTERM, stop);
  on_signal(SIGINT, stop);
  on_signal(SIGHUP, [](int, short, void* self) { static_cast<Frontend*>(self)->reload(); });
  wait_for_backends();
  for (const auto& listener : listeners_) {
    event_add(listener->acceptable.get(), nullptr);
    base::log_info("listening on {}{}", listener->socket.address.to_string(),
                   listener->socket.is_inherited ? " (inherited)" : "");
  }
  base::notify_supervisor(ready_notice());
  if (watchdog_.is_watched()) {
    const timeval interval = watchdog_.interval();
    event_add(ping_.get(), &interval);
  }
  event_base_dispatch(base_.get());
  for (const auto& listener : listeners_) {
    listener->acceptable.reset();
    listener->socket.close();
  }
}

// A port may have been chosen by the kernel: it is told as it is.
std::string Frontend::ready_notice() const {
  std::string notice(base::kNotifyReady);
  for (const auto& listener : listeners_) {
    notice.append("\n").append(base::kNotifyListening).append(local_address_text(listener->socket.fd.get()));
  }
  return notice;
}

// SIGHUP.
void Frontend::reload() {
  // It says itself how that went.
  if (stats_.tls != nullptr) static_cast<void>(stats_.tls->refresh());
  if (config_.credentials == nullptr) return;
  if (const Status loaded = config_.credentials->load(); loaded) {
    base::log_info("read {} again", config_.credentials->path());
  } else {
    base::log_error("auth_file stays as it was: {}", loaded.message());
  }
}

void Frontend::ping_watchdog() {
  if (!watchdog_.beat()) return;
  for (const auto& worker : workers_) worker->wake();
}

std::vector<ListenerRecord> Frontend::listener_records() const {
  std::vector<ListenerRecord> records;
  for (const auto& listener : listeners_) {
    records.push_back({listener->socket.fd.get(), local_address_text(listener->socket.fd.get())});
  }
  return records;
}

// --- accepting
// -----------------------------------------------------------------------------------------------------------

void Frontend::on_acceptable(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    const bool has_room = stats_.gate.has_room(config_.max_connections);
    if (!has_room && !config_.maxconns_fast) return wait_for_room();
    UniqueFd client(::accept4(listener.socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) rest_from_accepting();
      return;
    }
    if (has_room) {
      give_to_worker(std::move(client), listener);
    } else {
      refuse(std::move(client), listener);
    }
  }
}

void Frontend::give_to_worker(UniqueFd socket, const Listener& listener) {
  const bool is_unix = listener.socket.address.is_unix();
  if (!is_unix) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  const size_t worker = next_worker_++ % workers_.size();
  NewClient client;
  client.peer = peer_address_text(socket.get());
  client.listen = local_address_text(socket.get());
  client.may_idle = is_unix;
  if (listener.socket.address.is_tls()) {
    client.socket = stats_.tls->accept(std::move(socket), client.peer, stats_.workers[worker]->tls);
  } else {
    client.socket = std::make_unique<PlainSocket>(std::move(socket));
  }
  stats_.gate.enter();
  workers_[worker]->give(std::move(client));
}

void Frontend::stop_accepting() {
  for (const auto& listener : listeners_) event_del(listener->acceptable.get());
  stats_.accepts.is_disabled.set(1);
  stats_.accepts.disabled.add(1);
  disabled_since_ns_ = stats_.clock->now_ns();
}

void Frontend::accept_again() {
  stats_.gate.take_notice();
  stats_.accepts.is_disabled.set(0);
  stats_.accepts.disabled_us.add((stats_.clock->now_ns() - disabled_since_ns_) / 1000);
  for (const auto& listener : listeners_) event_add(listener->acceptable.get(), nullptr);
}

void Frontend::rest_from_accepting() {
  static base::LogLimit limit;
  base::log_limited(limit, base::LogLevel::kWarning,
                    "no descriptors left for new clients: raise the limit of open files");
  stop_accepting();
  event_add(rested_.get(), &kAcceptPause);
}

void Frontend::wait_for_room() {
  if (!stats_.gate.wait_for_room(config_.max_connections)) return;  // the listener is still readable
  stop_accepting();
  event_add(has_room_.get(), nullptr);
}

void Frontend::refuse(UniqueFd socket, const Listener& listener) {
  stats_.accepts.rejected_connections.add(1);
  if (listener.socket.address.is_tls()) return;  // it could not read it
  const std::string_view line = memcache::kTooManyConnections;
  // Best effort, as memcached's.
  [[maybe_unused]] const ssize_t sent = ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace egret::proxy
