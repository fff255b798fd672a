#include "bench_fleet/clients.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <utility>

#include <sys/epoll.h>

#include "bench/monotonic.h"
#include "op/op.h"

namespace egret::bench_fleet {
namespace {

using base::Status;
using bench::monotonic_ns;
using rpc::ClientSession;

constexpr size_t kHandshakes =
    16;  // at once: a backend allows 32 connections of one peer that have not finished the handshake
constexpr int kTickMs = static_cast<int>(ClientSession::kTickNs / 1'000'000);
constexpr uint64_t kAnswerPatienceNs = 5'000'000'000;
constexpr uint64_t kDataBit = uint64_t{1} << 63;

struct Answer final : rpc::Waiter {
  void on_result(const op::Result& result) override {
    is_here = true;
    code = result.code;
  }
  bool is_here = false;
  op::ResultCode code{};
};

}  // namespace

Clients::Clients(rpc::SessionOptions asks, uint32_t hosts, const base::Clock& clock)
    : asks_(std::move(asks)),
      hosts_(hosts),
      clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      lost_(Status::ok()) {}

Clients::~Clients() {
  close_all();
}

void Clients::close_all() {
  for (One& one : sessions_) active_.forget(one.session.get());
  sessions_.clear();
  index_.clear();
  open_now_ = 0;
}

Status Clients::open(size_t count, double patience_s, const GoesOn& goes_on) {
  static std::atomic<uint64_t> worker_id{uint64_t{std::random_device()()} << 32};
  rpc::SessionObserver& observer = *this;
  while (sessions_.size() < count) {
    const size_t until = std::min(sessions_.size() + kHandshakes, count);
    while (sessions_.size() < until) {
      rpc::SessionOptions options = asks_;
      options.address = address_of(sessions_.size());
      options.worker_id = ++worker_id;
      sessions_.push_back({std::make_unique<ClientSession>(options, clock_, observer, transport::connect)});
      index_[sessions_.back().session.get()] = sessions_.size() - 1;
      sessions_.back().session->start();
    }
    if (Status opened = wait_for(until, patience_s, goes_on); !opened) return opened;
  }
  return lost_;
}

// A connection to an address of 127.0.0.0/8 comes from that same address.
std::string Clients::address_of(size_t index) const {
  if (hosts_ == 1) return asks_.address;
  const size_t host = index % hosts_;
  return "tcp:127.1." + std::to_string(host / 250) + "." + std::to_string(1 + host % 250) +
         asks_.address.substr(asks_.address.rfind(':'));
}

Status Clients::reopen(double patience_s, const GoesOn& goes_on) {
  return wait_for(sessions_.size(), patience_s, goes_on);
}

Status Clients::wait_for(size_t count, double patience_s, const GoesOn& goes_on) {
  const uint64_t deadline_ns = monotonic_ns() + bench::seconds_to_ns(patience_s);
  while (open_now_ < count) {
    turn(kTickMs);
    pass();
    if (!lost_) return lost_;
    if (!goes_on() || monotonic_ns() > deadline_ns) {
      return Status::error(std::to_string(open_now_) + " of " + std::to_string(count) + " sessions with " +
                           asks_.address + (why_.empty() ? "" : ": " + why_));
    }
  }
  return Status::ok();
}

void Clients::turn(int most_ms) {
  std::array<epoll_event, 256> events{};
  const int found = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), most_ms);
  for (int i = 0; i < found; ++i) {
    const uint64_t which = events[static_cast<size_t>(i)].data.u64;
    ClientSession& session = *sessions_[which & ~kDataBit].session;
    if (session.state() == ClientSession::State::kWaiting) continue;  // of a connection that has just been given up
    if ((which & kDataBit) == 0) session.on_control_ready();
    if ((which & kDataBit) != 0 && session.is_open()) session.on_data_ready();
  }
  const uint64_t now_ns = monotonic_ns();
  const bool is_at_rest = open_now_ == sessions_.size() && !active_.needs_tick();
  if (is_at_rest || now_ns - ticked_ns_ < ClientSession::kTickNs) return;
  ticked_ns_ = now_ns;
  for (One& one : sessions_) one.session->tick();
}

void Clients::pass() {
  active_.begin_pass();
  active_.flush();
  active_.fetch();
  active_.hand_out_credit();
}

void Clients::rest(uint64_t until_ns) {
  if (active_.should_spin() || !active_.prepare_sleep()) return;
  const uint64_t now_ns = monotonic_ns();
  turn(static_cast<int>((until_ns - std::min(now_ns, until_ns)) / 1'000'000));
}

Status Clients::ask(ClientSession& session) {
  if (!session.is_open()) return Status::error("the session is not open");
  op::Op get;
  get.code = op::OpCode::kGet;
  get.key = "fleet";
  get.hash = session.lanes().hash(get.key);
  const bool is_local = session.endpoint().limits().fetch_is_local;
  Answer answer;
  active_.begin_pass();
  if (!session.lanes().of(get.hash).append(get, &answer)) return Status::error("a get that no slot took");
  const uint64_t give_up_ns = monotonic_ns() + kAnswerPatienceNs;
  while (!answer.is_here && session.is_open() && monotonic_ns() < give_up_ns) {
    pass();
    if (!is_local && !answer.is_here) rest(monotonic_ns() + ClientSession::kTickNs);
  }
  // What waits for the answer goes with this function.
  if (!answer.is_here && session.is_open()) session.close();
  if (!answer.is_here || (answer.code != op::ResultCode::kMiss)) {
    return Status::error("a get has no answer, or a wrong one");
  }
  return Status::ok();
}

void Clients::expect_losses() {
  losses_are_errors_ = false;
  for (One& one : sessions_) one = {std::move(one.session)};
  back_now_ = 0;
  first_back_ns_ = 0;
}

uint32_t Clients::most_attempts() const {
  uint32_t most = 0;
  for (const One& one : sessions_) most = std::max(most, one.attempts);
  return most;
}

Status Clients::watch(int fd, uint32_t wanted, size_t index, bool is_data) {
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = index | (is_data ? kDataBit : 0);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status::ok();
  return Status::system_error("epoll_ctl", errno);
}

Status Clients::on_session_connecting(ClientSession& session) {
  const size_t index = index_of(session);
  ++sessions_[index].attempts;
  return watch(session.endpoint().control_fd(), EPOLLIN, index, false);
}

Status Clients::on_session_open(ClientSession& session) {
  ++open_now_;
  if (sessions_[index_of(session)].was_lost) {
    ++back_now_;
    if (first_back_ns_ == 0) first_back_ns_ = monotonic_ns();
  }
  const uint32_t pushed = session.endpoint().limits().results_are_pushed ? uint32_t{EPOLLOUT} : 0;
  return watch(session.endpoint().data_fd(), EPOLLIN | EPOLLET | pushed, index_of(session), true);
}

// Waits for a backend that does not listen yet, but not for one that refuses us.
void Clients::on_session_lost(ClientSession& session, const std::string& why, bool was_open) {
  why_ = why;
  One& one = sessions_[index_of(session)];
  if (why.starts_with("cannot connect") && one.attempts > 0) --one.attempts;  // nobody was there
  if (was_open) {
    --open_now_;
    if (std::exchange(one.was_lost, true)) --back_now_;
  }
  if (losses_are_errors_ && (was_open || why.starts_with("refused"))) {
    lost_ = Status::error("a session with " + asks_.address + ": " + why);
  }
}

}  // namespace egret::bench_fleet
