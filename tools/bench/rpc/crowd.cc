#include "bench_rpc/crowd.h"

#include <algorithm>
#include <random>
#include <utility>

#include <poll.h>

#include "bench/monotonic.h"

namespace egret::bench_rpc {
namespace {

using base::Status;
using rpc::ClientSession;

// Simultaneous handshakes: a backend allows 32 connections of one peer that have not finished the handshake.
constexpr size_t kHandshakes = 16;
constexpr int kTickMs = 20;

}  // namespace

Crowd::Crowd(std::string address, uint32_t window, const base::Clock& clock)
    : address_(std::move(address)),
      window_(window),
      clock_(clock),
      first_worker_id_(uint64_t{std::random_device()()} << 32),
      lost_(Status::ok()) {}

Crowd::~Crowd() = default;

Status Crowd::resize(size_t sessions, double patience_s, const GoesOn& goes_on) {
  while (sessions_.size() > sessions) {
    if (active_ != nullptr) active_->forget(sessions_.back().get());
    sessions_.pop_back();
  }
  rpc::SessionObserver& observer = *this;
  while (sessions_.size() < sessions) {
    const size_t first = sessions_.size();
    for (size_t i = first; i < std::min(first + kHandshakes, sessions); ++i) {
      rpc::SessionOptions options;
      options.address = address_;
      options.worker_id = first_worker_id_ + i;
      options.window = window_;
      sessions_.push_back(std::make_unique<ClientSession>(options, clock_, observer, transport::connect));
      sessions_.back()->start();
    }
    if (Status open = wait_until_open(first, patience_s, goes_on); !open) return open;
  }
  return lost_;
}

Status Crowd::wait_until_open(size_t first, double patience_s, const GoesOn& goes_on) {
  const uint64_t deadline = bench::monotonic_ns() + bench::seconds_to_ns(patience_s);
  std::vector<pollfd> ready;
  while (true) {
    ready.clear();
    bool all_open = true;
    for (size_t i = first; i < sessions_.size(); ++i) {
      ClientSession& session = *sessions_[i];
      all_open &= session.is_open();
      // poll() ignores a descriptor of -1.
      const bool listens = session.state() == ClientSession::State::kHandshaking;
      ready.push_back({listens ? session.endpoint().control_fd() : -1, POLLIN, 0});
    }
    if (all_open) return Status::ok();
    if (!lost_) return lost_;
    if (!goes_on() || bench::monotonic_ns() > deadline)
      return Status::error("no session with " + address_ + (why_.empty() ? "" : ": " + why_));
    ::poll(ready.data(), ready.size(), kTickMs);
    for (size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents != 0) sessions_[first + i]->on_control_ready();
      sessions_[first + i]->tick();
    }
  }
}

// Waits for a backend that does not listen yet, but not for one that refuses us.
void Crowd::on_session_lost(ClientSession&, const std::string& why, bool was_open) {
  why_ = why;
  if (was_open || why.starts_with("refused")) lost_ = Status::error("a session with " + address_ + ": " + why);
}

}  // namespace egret::bench_rpc
