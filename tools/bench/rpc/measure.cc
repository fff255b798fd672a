// measure(): a backend is started → filled through a session → rounds: the store in this process, then the backend with
// one number of sessions after the other (up in one round, down in the next, so that each is opened and closed once)
// → tables.
#include "bench_rpc/measure.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <ranges>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/service/program.h"
#include "bench/monotonic.h"
#include "bench/server/process_meter.h"
#include "bench_rpc/crowd.h"
#include "bench_rpc/driver.h"
#include "bench_rpc/items.h"
#include "bench_rpc/passes.h"
#include "bench_store/store_bench.h"
#include "bench_store/subject.h"

namespace egret::bench_rpc {
namespace {

using base::Status;

constexpr double kStartPatience = 60;  // s: a backend makes all its memory resident before it serves
constexpr double kOpenPatience = 10;
constexpr uint64_t kSettleNs = 5 * bench::kNsPerSecond;  // at most
constexpr timespec kSettleStep{0, 20'000'000};
constexpr uint64_t kDescriptors = 4;  // of a session, on either side, at most
constexpr uint64_t kOtherDescriptors = 256;
constexpr uint64_t kRoomForRings = 4096;  // a backend has no more of them for rings of lanes

uint64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) << 10;
  }
  return 0;
}

class Measurement {
 public:
  Measurement(const MeasureOptions& options, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        items_(options.keys, options.value_size, options.ops_per_set),
        driver_(items_, options.ops_per_message, clock_) {
    for (const uint32_t sessions : options.sessions) {
      shapes_.push_back({.sessions = sessions});
      if (sessions > 1) shapes_.push_back({.sessions = sessions, .in_turn = true});
    }
  }

  Status start();
  Status run_rounds();
  Outcome outcome() const { return {store_ns_, shapes_, driver_.counts().cut}; }
  uint64_t wrong() const { return driver_.counts().wrong + (store_ != nullptr ? store_->wrong() : 0); }

 private:
  Status run_round(int round);
  Status measure_shape(Shape& shape);
  Status drive(const Shape& shape);
  Status resize(size_t sessions, double patience_s);
  void settle();

  const MeasureOptions& options_;
  const std::atomic<bool>& stop_;
  base::SystemClock clock_;
  bench::Server backend_;
  std::unique_ptr<Crowd> crowd_;
  uint64_t resident_alone_ = 0;
  std::unique_ptr<bench_store::StoreBench> store_;
  Items items_;
  Driver driver_;
  std::vector<Shape> shapes_;
  std::vector<double> store_ns_;  // of an op, in each round
};

Status Measurement::start() {
  const uint32_t most = std::ranges::max(options_.sessions);
  const uint64_t memory = bench_store::memory_for(options_.keys, options_.value_size) * 11 / 10;
  bench::EgretFiles files = options_.egret;
  const std::vector<std::string> settings{"memory=" + std::to_string(memory),
                                          "partitions=" + std::to_string(options_.partitions),
                                          "pin=on",
                                          "window=" + std::to_string(options_.window),
                                          "max_sessions=" + std::to_string(most + 1),
                                          "sessions_per_peer=0",
                                          "session_memory_per_peer=0",
                                          "admin="};
  files.backend_set.insert(files.backend_set.begin(), settings.begin(), settings.end());
  base::raise_descriptor_limit(most * kDescriptors + kRoomForRings + kOtherDescriptors);
  std::string meeting;
  auto started = bench::start_backend(files, meeting);
  if (!started) return started.status();
  backend_ = std::move(started.value());
  // Partitions are pinned from the first CPU on.
  if (const std::vector<int> cpus = base::allowed_cpus(); cpus.size() > options_.partitions)
    base::pin_this_thread(cpus.back());
  crowd_ = std::make_unique<Crowd>(meeting, options_.window, clock_);
  if (Status open = resize(1, kStartPatience); !open) return open;
  if (Status filled = driver_.fill(crowd_->at(0), stop_); !filled) return filled;
  if (options_.measures_store)
    store_ = std::make_unique<bench_store::StoreBench>(options_.keys, memory, options_.value_size);
  if (Status closed = resize(0, kOpenPatience); !closed) return closed;
  settle();
  resident_alone_ = resident_bytes(backend_.pids[0]);
  return Status::ok();
}

Status Measurement::resize(size_t sessions, double patience_s) {
  const auto goes_on = [this] { return !stop_.load() && !backend_.children[0].has_ended(); };
  Status done = crowd_->resize(sessions, patience_s, goes_on);
  return done ? done : Status::error(done.message() + logs_of(backend_));
}

// Waits until the backend is idle: sessions are opened and closed, and lanes are asleep.
void Measurement::settle() {
  const uint64_t give_up_ns = bench::monotonic_ns() + kSettleNs;
  auto before = bench::read_process_cost(backend_.pids);
  while (before && bench::monotonic_ns() < give_up_ns) {
    ::nanosleep(&kSettleStep, nullptr);
    auto now = bench::read_process_cost(backend_.pids);
    if (!now) return;
    const bench::ProcessCost cost = now.value() - before.value();
    if (cost.cpu_ns * 10 < cost.wall_ns) return;
    before = std::move(now);
  }
}

Status Measurement::run_rounds() {
  for (int round = 0; round < options_.rounds && !stop_.load(); ++round) {
    if (Status done = run_round(round); !done) return done;
    std::fprintf(stderr, "egret-bench rpc: round %d of %d\n", round + 1, options_.rounds);
  }
  return Status::ok();
}

Status Measurement::run_round(int round) {
  if (store_ != nullptr) {
    // As many ops to a pass of the store as the backend has had in a message.
    const DriverCounts& counts = driver_.counts();
    const auto batch =
        static_cast<uint32_t>(std::max<uint64_t>(1, counts.ops / std::max<uint64_t>(1, counts.messages)));
    const auto mix = options_.ops_per_set == 0 ? bench_store::Mix::kGet : bench_store::Mix::kGet95;
    store_ns_.push_back(store_->measure({"", mix, batch}, options_.seconds));
  }
  std::vector<Shape*> order;
  for (Shape& shape : shapes_) order.push_back(&shape);
  if (round % 2 == 1) std::ranges::reverse(order);
  for (Shape* shape : order) {
    if (Status done = measure_shape(*shape); !done) return done;
  }
  return Status::ok();
}

Status Measurement::measure_shape(Shape& shape) {
  if (Status open = resize(shape.sessions, kOpenPatience); !open) return open;
  settle();
  shape.granted = crowd_->at(0).grant().layout.request_bytes() + crowd_->at(0).grant().layout.response_bytes();
  const auto before = bench::read_process_cost(backend_.pids);
  const DriverCounts counted = driver_.counts();
  Status driven = drive(shape);
  const auto after = bench::read_process_cost(backend_.pids);
  if (!driven) return driven;
  if (!before || !after) return Status::error("the backend has ended" + logs_of(backend_));
  const uint64_t resident = resident_bytes(backend_.pids[0]);
  shape.resident = std::max(shape.resident, resident > resident_alone_ ? resident - resident_alone_ : 0);
  const bench::ProcessCost cost = after.value() - before.value();
  const DriverCounts counts = driver_.counts() - counted;
  const auto ops = static_cast<double>(counts.ops);
  const auto wall = static_cast<double>(cost.wall_ns);
  const uint64_t ours = cost.cpu_ns + cost.own_cpu_ns;
  const uint64_t others = cost.machine_busy_ns - std::min(cost.machine_busy_ns, ours);
  const PassCost pass = measure_passes(*crowd_);
  shape.rounds.push_back(
      {.cpu_ns = static_cast<double>(cost.cpu_ns) / ops,
       .wall_ns = wall * options_.partitions / ops,
       .client_ns = static_cast<double>(cost.own_cpu_ns - std::min(cost.own_cpu_ns, counts.waited_ns)) / ops,
       .waits = static_cast<double>(counts.waited_ns) / wall,
       .ops_per_message = ops / static_cast<double>(counts.messages),
       .others_busy = static_cast<double>(others) / wall,
       .pass_ns = pass.ns,
       .touching_all_ns = pass.touching_all_ns});
  return Status::ok();
}

// One session is active at a time. All its ops are answered before the next session's turn.
Status Measurement::drive(const Shape& shape) {
  const uint64_t end_ns = clock_.now_ns() + bench::seconds_to_ns(options_.seconds);
  const uint64_t turn_ns = uint64_t{options_.turn_ms} * 1'000'000;
  for (uint32_t active = 0; clock_.now_ns() < end_ns; active = (active + 1) % shape.sessions) {
    const uint64_t until_ns = shape.in_turn ? std::min(end_ns, clock_.now_ns() + turn_ns) : end_ns;
    if (Status driven = driver_.run(crowd_->at(active), until_ns, stop_); !driven) return driven;
    if (stop_.load()) return Status::error("interrupted");
  }
  return crowd_->health();
}

}  // namespace

Status measure(const MeasureOptions& options, const std::atomic<bool>& stop, Outcome& outcome, uint64_t& errors) {
  Measurement measurement(options, stop);
  Status done = measurement.start();
  if (done) done = measurement.run_rounds();
  outcome = measurement.outcome();
  errors += measurement.wrong();
  return done;
}

}  // namespace egret::bench_rpc
