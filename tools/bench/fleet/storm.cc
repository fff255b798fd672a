#include "bench_fleet/storm.h"

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "bench/monotonic.h"
#include "bench/server/process_meter.h"

namespace egret::bench_fleet {

using base::Status;
using bench::monotonic_ns;

namespace {

constexpr int kTurnMs = 1;
constexpr timespec kBetweenGets{0, 1'000'000};

}  // namespace

Bystander::Bystander(const rpc::SessionOptions& asks) : asks_(asks), thread_([this] { run(); }) {}

Bystander::~Bystander() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void Bystander::run() {
  const base::SystemClock clock;
  Clients clients(asks_, 1, clock);
  clients.expect_losses();
  const auto goes_on = [this] { return !ends_.load(); };
  constexpr double kForEver = 1e6;
  if (!clients.open(1, kForEver, goes_on)) return;  // it was ended
  while (goes_on()) {
    if (!clients.reopen(kForEver, goes_on)) return;
    const uint64_t begun_ns = monotonic_ns();
    if (const Status asked = clients.ask(clients.at(0)); asked) {
      took_us_.push_back(static_cast<double>(monotonic_ns() - begun_ns) / 1e3);
    } else {
      // The backend that was killed may still have taken it. Beyond that nobody is lost.
      if (!took_us_.empty() && clients.most_attempts() > 1) health_ = asked;
      took_us_.clear();
    }
    clients.turn(0);
    ::nanosleep(&kBetweenGets, nullptr);
  }
}

void Bystander::tell(Restart& restart) {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  restart.served = took_us_.size();
  if (took_us_.empty()) return;
  std::ranges::sort(took_us_);
  restart.served_p50_us = took_us_[took_us_.size() / 2];
  restart.served_p99_us = took_us_[took_us_.size() * 99 / 100];
}

Status watch_return(Clients& clients, bench::Server& backend, double patience_s, const std::atomic<bool>& stop,
                    Restart& restart) {
  const uint64_t give_up_ns = monotonic_ns() + bench::seconds_to_ns(patience_s);
  const auto since_first_ms = [&] { return static_cast<double>(monotonic_ns() - clients.first_back_ns()) / 1e6; };
  while (clients.back_now() < clients.size()) {
    clients.turn(kTurnMs);
    clients.pass();  // some notice there that the backend is gone
    if (restart.half_ms == 0 && clients.back_now() * 2 >= clients.size()) restart.half_ms = since_first_ms();
    if (monotonic_ns() > give_up_ns || stop.load() || backend.children[0].has_ended()) {
      return Status::error(std::to_string(clients.back_now()) + " of " + std::to_string(clients.size()) +
                           " sessions are back");
    }
  }
  restart.back_ms = since_first_ms();
  restart.attempts = clients.most_attempts();
  const auto used = bench::read_process_cost(backend.pids);
  if (!used) return used.status();
  restart.backend_us = static_cast<double>(used.value().cpu_ns) / 1e3 / static_cast<double>(clients.size());
  return Status::ok();
}

}  // namespace egret::bench_fleet
