// measure(): for each number of sessions a backend is started → they open, are counted, idle; passes; one is active.
#include "bench_fleet/fleet.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "base/service/program.h"
#include "bench/monotonic.h"
#include "bench/server/process_meter.h"
#include "bench_rpc/crowd.h"
#include "op/op.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"

namespace egret::bench_fleet {
namespace {

using base::Status;
using bench::monotonic_ns;

constexpr double kPatience = 60;  // s, for a backend that starts or a session that opens
constexpr uint64_t kOtherDescriptors = 256;
constexpr timespec kSettle{0, 300'000'000};  // lanes fall asleep within milliseconds
constexpr uint64_t kAnswerPatienceNs = 5'000'000'000;
constexpr uint64_t kPasses = 1000;  // between two looks at the clock

uint64_t descriptors_of(pid_t pid) {
  std::error_code failed;
  uint64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", failed)) {
    (void)entry;
    ++count;
  }
  return count;
}

// A process that has just made its sessions ready still holds the descriptors that it handed over: they are counted once
// their number stays.
uint64_t settled_descriptors_of(pid_t pid) {
  const uint64_t give_up_ns = monotonic_ns() + kAnswerPatienceNs;
  uint64_t count = descriptors_of(pid);
  while (monotonic_ns() < give_up_ns) {
    ::nanosleep(&kSettle, nullptr);
    const uint64_t before = std::exchange(count, descriptors_of(pid));
    if (count == before) break;
  }
  return count;
}

struct Answer final : rpc::Waiter {
  void on_result(const op::Result& result) override {
    is_here = true;
    code = result.code;
  }
  bool is_here = false;
  op::ResultCode code{};
};

// One backend, and a number of sessions with it.
class Fleet {
 public:
  Fleet(const FleetOptions& options, const std::atomic<bool>& stop) : options_(options), stop_(stop) {}

  Status start(uint32_t lanes, uint32_t most_sessions);
  Status measure(uint32_t sessions, Cost& cost);

 private:
  Status open(uint32_t sessions, Cost& cost);
  void count(Cost& cost);
  Status idle(Cost& cost);
  void pass();
  void time_passes(Cost& cost);
  Status ask(rpc::ClientSession& session);
  Status time_active(Cost& cost);
  base::Expected<bench::ProcessCost> cost_now() { return bench::read_process_cost(backend_.pids); }

  const FleetOptions& options_;
  const std::atomic<bool>& stop_;
  base::SystemClock clock_;
  bench::Server backend_;
  rpc::ActiveSessions active_;  // of crowd_
  std::unique_ptr<bench_rpc::Crowd> crowd_;
  uint32_t lanes_ = 0;
  uint64_t own_descriptors_ = 0, backend_descriptors_ = 0, own_bytes_ = 0, backend_bytes_ = 0;  // without sessions
};

Status Fleet::start(uint32_t lanes, uint32_t most_sessions) {
  lanes_ = lanes;
  bench::EgretFiles files = options_.egret;
  const std::vector<std::string> settings{"memory=64MiB",
                                          "item_size_max=1MiB",
                                          "populate=false",
                                          "partitions=" + std::to_string(lanes),
                                          "window=" + std::to_string(options_.window),
                                          "request_slot_size=" + std::to_string(kRequestSlot),
                                          "response_slot_size=" + std::to_string(kResponseSlot),
                                          "max_sessions=" + std::to_string(most_sessions),
                                          "sessions_per_peer=0",
                                          "session_memory_per_peer=0",
                                          "admin="};
  files.backend_set.insert(files.backend_set.begin(), settings.begin(), settings.end());
  base::raise_descriptor_limit(most_sessions * CostModel::kDescriptorsOfProxy + kOtherDescriptors);
  std::string meeting;
  auto started = bench::start_backend(files, meeting);
  if (!started) return started.status();
  backend_ = std::move(started.value());
  crowd_ = std::make_unique<bench_rpc::Crowd>(meeting, options_.window, clock_);
  crowd_->list_active_in(active_);
  // The first session waits until the backend listens.
  Cost first;
  if (Status opened = open(1, first); !opened) return opened;
  if (Status asked = ask(crowd_->at(0)); !asked) return asked;
  if (Status closed = crowd_->resize(0, kPatience, [] { return true; }); !closed) return closed;
  backend_descriptors_ = settled_descriptors_of(backend_.pids[0]);
  own_descriptors_ = descriptors_of(::getpid());
  own_bytes_ = bench::resident_bytes(::getpid());
  backend_bytes_ = bench::resident_bytes(backend_.pids[0]);
  return Status::ok();
}

Status Fleet::measure(uint32_t sessions, Cost& cost) {
  cost = {.sessions = sessions, .lanes = lanes_};
  if (Status opened = open(sessions, cost); !opened) return opened;
  if (Status rested = idle(cost); !rested) return rested;
  count(cost);  // what the handshakes took is closed by now
  time_passes(cost);
  if (Status asked = time_active(cost); !asked) return asked;
  return crowd_->health();
}

Status Fleet::open(uint32_t sessions, Cost& cost) {
  const auto goes_on = [this] { return !stop_.load() && !backend_.children[0].has_ended(); };
  const auto before = cost_now();
  const uint64_t begun_ns = monotonic_ns();
  if (Status opened = crowd_->resize(sessions, kPatience, goes_on); !opened) {
    return Status::error(opened.message() + logs_of(backend_));
  }
  cost.open_ms = static_cast<double>(monotonic_ns() - begun_ns) / 1e6;
  const auto after = cost_now();
  if (!before || !after) return Status::error("the backend has ended" + logs_of(backend_));
  cost.open_backend_us = static_cast<double>((after.value() - before.value()).cpu_ns) / 1e3 / sessions;
  return Status::ok();
}

void Fleet::count(Cost& cost) {
  for (uint32_t i = 0; i < cost.sessions; ++i) {
    rpc::ClientSession& session = crowd_->at(i);
    if (!session.is_open()) continue;
    ++cost.open;
    cost.region_bytes += session.grant().layout.request_bytes() + session.grant().layout.response_bytes();
  }
  const auto grown = [&](uint64_t now, uint64_t before) { return now > before ? now - before : 0; };
  cost.backend_descriptors = grown(settled_descriptors_of(backend_.pids[0]), backend_descriptors_);
  cost.own_descriptors = grown(descriptors_of(::getpid()), own_descriptors_);
  const auto sessions = static_cast<double>(cost.sessions);
  cost.own_bytes = static_cast<double>(grown(bench::resident_bytes(::getpid()), own_bytes_)) / sessions;
  cost.backend_bytes = static_cast<double>(grown(bench::resident_bytes(backend_.pids[0]), backend_bytes_)) / sessions;
}

Status Fleet::idle(Cost& cost) {
  ::nanosleep(&kSettle, nullptr);
  const auto before = cost_now();
  const timespec pause{
      static_cast<time_t>(options_.seconds),
      static_cast<long>((options_.seconds - static_cast<double>(static_cast<time_t>(options_.seconds))) * 1e9)};
  ::nanosleep(&pause, nullptr);
  const auto after = cost_now();
  if (!before || !after) return Status::error("the backend has ended" + logs_of(backend_));
  const bench::ProcessCost used = after.value() - before.value();
  cost.idle_backend = static_cast<double>(used.cpu_ns) / static_cast<double>(used.wall_ns);
  return Status::ok();
}

// What a proxy's worker does with its sessions in a pass.
void Fleet::pass() {
  active_.begin_pass();
  active_.flush();
  active_.fetch();
  active_.hand_out_credit();
}

void Fleet::time_passes(Cost& cost) {
  const uint64_t end_ns = monotonic_ns() + bench::seconds_to_ns(options_.seconds / 2);
  const uint64_t begun_ns = monotonic_ns();
  uint64_t passes = 0;
  uint64_t now_ns = begun_ns;
  for (; now_ns < end_ns; now_ns = monotonic_ns(), passes += kPasses) {
    for (uint64_t i = 0; i < kPasses; ++i) pass();
  }
  cost.pass_ns = static_cast<double>(now_ns - begun_ns) / static_cast<double>(std::max<uint64_t>(passes, 1));
  const uint64_t kept_ns = monotonic_ns();
  for (size_t i = 0; i < crowd_->size(); ++i) crowd_->at(i).keep_alive();
  cost.keep_alive_ns = static_cast<double>(monotonic_ns() - kept_ns);
}

// One get, as a worker does it that polls.
Status Fleet::ask(rpc::ClientSession& session) {
  op::Op get;
  get.code = op::OpCode::kGet;
  get.key = "fleet";
  get.hash = session.lanes().hash(get.key);
  Answer answer;
  active_.begin_pass();
  if (!session.lanes().of(get.hash).append(get, &answer)) return Status::error("a get that no slot took");
  const uint64_t give_up_ns = monotonic_ns() + kAnswerPatienceNs;
  while (!answer.is_here && session.is_open() && monotonic_ns() < give_up_ns) {
    pass();
  }
  if (!answer.is_here) return Status::error("a get was not answered" + logs_of(backend_));
  return answer.code == op::ResultCode::kMiss ? Status::ok() : Status::error("a get of what is not there has no miss");
}

Status Fleet::time_active(Cost& cost) {
  rpc::ClientSession& session = crowd_->at(cost.sessions / 2);
  std::vector<double> took_us;
  const auto before = cost_now();
  const uint64_t end_ns = monotonic_ns() + bench::seconds_to_ns(options_.seconds);
  for (uint64_t begun_ns = monotonic_ns(); begun_ns < end_ns && !stop_.load();) {
    if (Status asked = ask(session); !asked) return asked;
    const uint64_t now_ns = monotonic_ns();
    took_us.push_back(static_cast<double>(now_ns - begun_ns) / 1e3);
    begun_ns = now_ns;
  }
  const auto after = cost_now();
  if (!before || !after) return Status::error("the backend has ended" + logs_of(backend_));
  if (took_us.empty()) return Status::error("interrupted");
  std::ranges::sort(took_us);
  cost.latency_us = took_us[took_us.size() / 2];
  cost.latency_p99_us = took_us[took_us.size() * 99 / 100];
  cost.active_backend_us =
      static_cast<double>((after.value() - before.value()).cpu_ns) / 1e3 / static_cast<double>(took_us.size());
  return Status::ok();
}

Status measure_all(const FleetOptions& options, const std::atomic<bool>& stop, uint32_t lanes,
                   const std::vector<uint32_t>& numbers, std::vector<Cost>& costs, std::vector<std::string>& left_out) {
  for (const uint32_t sessions : numbers) {
    const uint64_t needed = sessions * CostModel::kDescriptorsOfBackend + kOtherDescriptors;
    if (const uint64_t limit = base::raise_descriptor_limit(needed); limit < needed) {
      left_out.push_back(std::to_string(sessions) + " sessions are left out: they take " + std::to_string(needed) +
                         " descriptors, the limit is " + std::to_string(limit) + " (ulimit -Hn)");
      continue;
    }
    Fleet fleet(options, stop);
    if (Status started = fleet.start(lanes, sessions); !started) return started;
    Cost cost;
    if (Status measured = fleet.measure(sessions, cost); !measured) return measured;
    costs.push_back(cost);
  }
  return Status::ok();
}

}  // namespace

Status measure(const FleetOptions& options, const std::atomic<bool>& stop, Outcome& outcome) {
  if (Status done = measure_all(options, stop, 1, options.sessions, outcome.of_backend, outcome.left_out); !done)
    return done;
  return measure_all(options, stop, options.lanes, options.backends, outcome.of_proxy, outcome.left_out);
}

}  // namespace egret::bench_fleet
