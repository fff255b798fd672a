// The way of a request:
//
//   start_batch: RequestMix -> Connection::add_get/add_set  (one batch)  -> flush: one send()
//        ^                                                                        |
//        |  closed loop: when answers are in; paced: what is due                  v
//   serve: Connection::receive: one recv(), every answer judged and counted <- epoll (level-triggered)
#include "bench/generator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/epoll.h>
#include <sys/prctl.h>

#include "bench/monotonic.h"

namespace egret::bench {
namespace {

constexpr uint64_t kMaxWaitNs = 20'000'000;         // how late the end of a run or a stop may be noticed
constexpr uint64_t kPatienceNs = 5 * kNsPerSecond;  // an answer that takes longer is counted as missing
constexpr uint32_t kPreloadBatch = 64;
constexpr uint32_t kPreloadBytes = 64 << 10;
constexpr int kEventsPerWait = 128;
constexpr unsigned long kTimerSlackNs = 1000;  // the default of 50 us would blur the schedule of paced requests

// CPU time to burn in the mode "at once", per read and per answered key: what memtier_benchmark 2 (libevent) uses more
// than this generator, measured at depth 1 and depth 16. Like it, the generator then reads at most 16 KiB at a time.
constexpr uint64_t kWorkPerReadNs = 3500;
constexpr uint64_t kWorkPerKeyNs = 300;
constexpr size_t kReadAtOnce = size_t{16} << 10;

void work(uint64_t ns) {
  const uint64_t until_ns = monotonic_ns() + ns;
  while (monotonic_ns() < until_ns) {
  }
}

BatchLimits batch_limits(const LoadSpec& spec, uint32_t preload_batch) {
  return {std::max(spec.depth, preload_batch), spec.multiget, spec.value_size};
}

}  // namespace

Generator::Generator(const LoadSpec& spec, const Keyspace& keyspace, uint32_t thread, const std::atomic<bool>& stop)
    : spec_(spec), keyspace_(keyspace), thread_(thread), stop_(stop), mix_(spec, thread), keys_(spec.multiget) {
  preload_batch_ = std::clamp<uint32_t>(kPreloadBytes / (spec.value_size + spec.key_size), 1, kPreloadBatch);
}

base::Status Generator::connect(const Address& address) {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.is_open()) return base::Status::system_error("epoll_create1", errno);
  for (uint32_t number = thread_; number < spec_.connections; number += spec_.threads) {
    auto fd = connect_to(address);
    if (!fd) return fd.status();
    Client client;
    client.connection =
        make_connection(spec_.protocol, std::move(fd.value()), keyspace_, batch_limits(spec_, preload_batch_), tally_);
    client.number = number;
    clients_.push_back(std::move(client));
    watch(clients_.back(), EPOLL_CTL_ADD, /*to_write=*/false);
  }
  live_ = static_cast<uint32_t>(clients_.size());
  return base::Status::ok();
}

void Generator::preload() {
  phase_ = Phase::kPreload;
  preload_next_ = thread_;
  start_all(monotonic_ns());
  settle(kPatienceNs);
}

void Generator::run(const LoadWindow& window) {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  const bool paced = spec_.rate > 0;
  phase_ = paced ? Phase::kPaced : Phase::kClosed;
  start_ns_ = window.start_ns;
  ns_per_request_ = paced ? static_cast<double>(kNsPerSecond) / spec_.rate : 0;
  tally_.set_window(window.measure_from_ns, window.measure_until_ns, paced);
  Counters before = tally_.counters;
  uint64_t before_ns = window.start_ns;
  bool measuring = false;
  uint64_t now_ns = monotonic_ns();
  if (!paced) start_all(now_ns);
  while (now_ns < window.measure_until_ns && live_ > 0 && !stop_.load(std::memory_order_relaxed)) {
    if (!measuring && now_ns >= window.measure_from_ns) {
      before = tally_.counters;
      before_ns = now_ns;
      measuring = true;
    }
    if (paced) start_due(now_ns);
    const uint64_t wake_ns = paced ? next_due_ns() : now_ns + kMaxWaitNs;
    wait_and_serve(std::min(wake_ns, measuring ? window.measure_until_ns : window.measure_from_ns));
    now_ns = monotonic_ns();
  }
  measured_ = tally_.counters - before;
  measured_seconds_ = static_cast<double>(now_ns - std::min(before_ns, now_ns)) / static_cast<double>(kNsPerSecond);
  phase_ = Phase::kDrain;
  settle(kPatienceNs);
}

// Composes and sends the next batch of a connection that may send more. False: there is nothing to send now.
bool Generator::start_batch(Client& client, uint64_t now_ns) {
  Connection& connection = *client.connection;
  connection.begin_batch();
  if (phase_ == Phase::kPreload) {
    if (!add_preload(connection, now_ns)) return false;
  } else if (phase_ == Phase::kClosed) {
    for (uint64_t i = connection.unanswered(); i < spec_.depth; ++i) add_request(client, now_ns);
  } else {
    const uint64_t count = std::min<uint64_t>(client.due - client.sent, spec_.depth);
    if (count == 0) return false;
    for (uint64_t i = 0; i < count; ++i) add_request(client, due_ns(client.number, client.sent++));
  }
  flush(client);
  return true;
}

void Generator::add_request(Client& client, uint64_t intended_ns) {
  if (mix_.next_is_get()) {
    for (uint32_t& key : keys_) key = mix_.next_key();
    client.connection->add_get(keys_, intended_ns);
  } else {
    client.connection->add_set(mix_.next_key(), mix_.next_version(), intended_ns);
  }
}

bool Generator::add_preload(Connection& connection, uint64_t now_ns) {
  const uint32_t before = preload_next_;
  for (uint32_t i = 0; i < preload_batch_ && preload_next_ < spec_.keys; ++i, preload_next_ += spec_.threads) {
    connection.add_set(preload_next_, mix_.next_version(), now_ns);
  }
  return preload_next_ != before;
}

void Generator::flush(Client& client) {
  const Connection::Outcome outcome = client.connection->flush();
  if (outcome == Connection::Outcome::kLost) {
    --live_;
    return;
  }
  const bool blocked = outcome == Connection::Outcome::kBlocked;
  if (blocked != client.waits_to_write) watch(client, EPOLL_CTL_MOD, blocked);
}

void Generator::start_all(uint64_t now_ns) {
  for (Client& client : clients_) {
    if (!client.connection->is_lost() && client.connection->is_idle()) start_batch(client, now_ns);
  }
}

uint64_t Generator::due_ns(uint32_t client_number, uint64_t sequence) const {
  const double place = static_cast<double>(sequence * spec_.connections + client_number);
  return start_ns_ + static_cast<uint64_t>(place * ns_per_request_);
}

// This thread's requests become due in the order of its clients, round and round.
uint64_t Generator::next_due_ns() const {
  return due_ns(clients_[scheduled_ % clients_.size()].number, scheduled_ / clients_.size());
}

void Generator::start_due(uint64_t now_ns) {
  for (; next_due_ns() <= now_ns; ++scheduled_) {
    Client& client = clients_[scheduled_ % clients_.size()];
    ++client.due;
    if (!client.connection->is_lost() && client.connection->is_idle()) start_batch(client, now_ns);
  }
}

void Generator::wait_and_serve(uint64_t until_ns) {
  const uint64_t now_ns = monotonic_ns();
  const uint64_t wait_ns = until_ns > now_ns ? std::min(until_ns - now_ns, kMaxWaitNs) : 0;
  const timespec timeout{0, static_cast<long>(wait_ns)};
  std::array<epoll_event, kEventsPerWait> events{};
  const int at_most = goes_at_once() ? 1 : kEventsPerWait;
  const int ready = ::epoll_pwait2(epoll_.get(), events.data(), at_most, &timeout, nullptr);
  for (int i = 0; i < ready; ++i) serve(clients_[events[i].data.u32], events[i].events);
}

void Generator::serve(Client& client, uint32_t events) {
  if (client.connection->is_lost()) return;
  if ((events & EPOLLOUT) != 0) {
    flush(client);
    if (client.connection->is_lost()) return;
  }
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read_answers(client);
}

// Reads what has come, and sends what the connection may send after that.
void Generator::read_answers(Client& client) {
  Connection& connection = *client.connection;
  const uint64_t unanswered = connection.unanswered();
  const uint64_t ops = tally_.counters.ops();
  if (connection.receive(goes_at_once() ? kReadAtOnce : SIZE_MAX) == Connection::Outcome::kLost) {
    --live_;
    return;
  }
  if (goes_at_once()) work(kWorkPerReadNs + (tally_.counters.ops() - ops) * kWorkPerKeyNs);
  const bool may_send = goes_at_once() ? connection.unanswered() < unanswered : connection.is_idle();
  if (may_send) start_batch(client, monotonic_ns());
}

bool Generator::has_unfinished() const {
  return std::any_of(clients_.begin(), clients_.end(), [this](const Client& client) {
    const bool owes = phase_ == Phase::kDrain && client.sent < client.due;
    return !client.connection->is_lost() && (owes || !client.connection->is_idle());
  });
}

// Serves until everything is answered. After so long without progress, counts the rest as failed.
void Generator::settle(uint64_t patience_ns) {
  uint64_t answered = tally_.counters.requests;
  uint64_t give_up_ns = monotonic_ns() + patience_ns;
  while (has_unfinished() && !stop_.load(std::memory_order_relaxed)) {
    wait_and_serve(give_up_ns);
    const uint64_t now_ns = monotonic_ns();
    if (tally_.counters.requests != answered) {
      answered = tally_.counters.requests;
      give_up_ns = now_ns + patience_ns;
    }
    if (now_ns >= give_up_ns) break;
  }
  for (Client& client : clients_) {
    if (client.connection->is_lost() || client.connection->is_idle()) continue;
    client.connection->abandon("no answer came within 5 s");
    --live_;
  }
}

void Generator::watch(Client& client, int operation, bool to_write) {
  epoll_event event{};
  event.events = EPOLLIN | (to_write ? static_cast<uint32_t>(EPOLLOUT) : 0U);
  event.data.u32 = static_cast<uint32_t>(&client - clients_.data());
  ::epoll_ctl(epoll_.get(), operation, client.connection->fd(), &event);
  client.waits_to_write = to_write;
}

}  // namespace egret::bench
