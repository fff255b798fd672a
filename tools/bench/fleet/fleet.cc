// measure(): for each number of sessions a backend is started → they open, are counted, idle; passes; one is active; the
// backend is restarted.
#include "bench_fleet/fleet.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options/secret.h"
#include "base/random.h"
#include "base/service/program.h"
#include "base/unique_fd.h"
#include "bench/client/address.h"
#include "bench/monotonic.h"
#include "bench/server/child_process.h"
#include "bench/server/process_meter.h"
#include "bench_fleet/clients.h"
#include "bench_fleet/storm.h"

namespace egret::bench_fleet {
namespace {

using base::Status;
using bench::monotonic_ns;

constexpr double kPatience = 60;  // s, for a backend that starts or a session that opens
constexpr uint64_t kOtherDescriptors = 300;
constexpr uint64_t kMostRings = 4096;        // a backend has no more descriptors for rings of lanes
constexpr timespec kSettle{0, 300'000'000};  // lanes fall asleep within milliseconds
constexpr uint64_t kCountPatienceNs = 5'000'000'000;
constexpr uint64_t kKeepAliveNs = 500'000'000;  // as proxy/worker.cc
constexpr uint64_t kPasses = 1000;              // between two looks at the clock

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
  const uint64_t give_up_ns = monotonic_ns() + kCountPatienceNs;
  uint64_t count = descriptors_of(pid);
  while (monotonic_ns() < give_up_ns) {
    ::nanosleep(&kSettle, nullptr);
    const uint64_t before = std::exchange(count, descriptors_of(pid));
    if (count == before) break;
  }
  return count;
}

// Bytes that the kernel keeps in memory for devices.
uint64_t pinned_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  uint64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmPin:") return status >> kib ? kib * 1024 : 0;
  }
  return 0;
}

// What a process has without sessions, and by how much it grows with them.
struct Footprint {
  uint64_t descriptors = 0, resident = 0, pinned = 0;

  static Footprint of(pid_t pid) {
    return {.descriptors = settled_descriptors_of(pid),
            .resident = bench::resident_bytes(pid),
            .pinned = pinned_bytes(pid)};
  }
  Footprint since(const Footprint& before) const {
    const auto grown = [](uint64_t now, uint64_t then) { return now > then ? now - then : 0; };
    return {grown(descriptors, before.descriptors), grown(resident, before.resident), grown(pinned, before.pinned)};
  }
};

// One backend, and a number of sessions with it.
class Fleet {
 public:
  Fleet(const FleetOptions& options, const std::atomic<bool>& stop) : options_(options), stop_(stop) {}

  Status start(uint32_t lanes);
  Status measure(uint32_t sessions, Cost& cost);
  Status restart(Restart& restart);

 private:
  Status place_backend();
  Status open(uint32_t sessions, Cost& cost);
  void count(Cost& cost);
  Status idle(Cost& cost);
  void time_passes(Cost& cost);
  Status time_active(Cost& cost);
  bool goes_on() { return !stop_.load() && !backend_.children[0].has_ended(); }
  Status ended() { return Status::error("the backend has ended" + logs_of(backend_)); }
  base::Expected<bench::ProcessCost> cost_now() { return bench::read_process_cost(backend_.pids); }

  const FleetOptions& options_;
  const std::atomic<bool>& stop_;
  base::SystemClock clock_;
  bench::EgretFiles files_;
  std::string meeting_;
  std::optional<bench::TemporaryFolder> folder_;  // of the secret
  std::optional<bench::ReservedPort> port_;
  rpc::SessionOptions asks_;
  bench::Server backend_;
  std::unique_ptr<Clients> clients_;
  uint32_t lanes_ = 0;
  Footprint backend_before_, own_before_;
};

// Where the backend is to listen, and sessions find it.
Status Fleet::place_backend() {
  meeting_ = options_.at;
  if (options_.hosts == 1) return Status::ok();  // start_backend() fills it in
  auto folder = bench::TemporaryFolder::make();
  auto port = bench::ReservedPort::reserve();
  if (!folder) return folder.status();
  if (!port) return port.status();
  folder_.emplace(std::move(folder.value()));
  port_.emplace(std::move(port.value()));
  std::string secret;
  while (secret.size() < 2 * base::kMinSecretBytes) secret += std::to_string(base::random_u64());
  const std::string file = folder_->path() + "/secret";
  const base::UniqueFd written(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (::write(written.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    return Status::system_error("cannot write " + file, errno);
  }
  files_.backend_set.insert(files_.backend_set.begin(), "secret_file=" + file);
  meeting_ = "tcp:0.0.0.0:" + std::to_string(port_->number());
  asks_.address = "tcp:127.0.0.1:" + std::to_string(port_->number());
  asks_.secret = base::Secret(secret);
  return Status::ok();
}

Status Fleet::start(uint32_t lanes) {
  lanes_ = lanes;
  files_ = options_.egret;
  // Otherwise as shipped. All workers here are one peer, or few.
  const std::vector<std::string> settings{
      "memory=64MiB",        "item_size_max=1MiB",        "populate=false", "partitions=" + std::to_string(lanes),
      "sessions_per_peer=0", "session_memory_per_peer=0", "admin="};
  files_.backend_set.insert(files_.backend_set.begin(), settings.begin(), settings.end());
  if (Status placed = place_backend(); !placed) return placed;
  auto started = bench::start_backend(files_, meeting_);
  if (!started) return started.status();
  backend_ = std::move(started.value());
  if (asks_.address.empty()) asks_.address = meeting_;
  asks_.window = options_.window;
  asks_.request_slot_size = asks_.response_slot_size = options_.slot_size;
  clients_ = std::make_unique<Clients>(asks_, options_.hosts, clock_);
  // The first session waits until the backend listens.
  Cost first;
  if (Status opened = open(1, first); !opened) return opened;
  if (Status asked = clients_->ask(clients_->at(0)); !asked) return asked;
  clients_->close_all();
  backend_before_ = Footprint::of(backend_.pids[0]);
  own_before_ = Footprint::of(::getpid());
  return Status::ok();
}

Status Fleet::measure(uint32_t sessions, Cost& cost) {
  cost = {.sessions = sessions, .lanes = lanes_};
  if (Status opened = open(sessions, cost); !opened) return opened;
  if (Status rested = idle(cost); !rested) return rested;
  count(cost);  // what the handshakes took is closed by now
  time_passes(cost);
  if (Status asked = time_active(cost); !asked) return asked;
  return clients_->health();
}

Status Fleet::open(uint32_t sessions, Cost& cost) {
  const auto before = cost_now();
  const uint64_t begun_ns = monotonic_ns();
  if (Status opened = clients_->open(sessions, kPatience, [this] { return goes_on(); }); !opened) {
    return Status::error(opened.message() + logs_of(backend_));
  }
  cost.open_ms = static_cast<double>(monotonic_ns() - begun_ns) / 1e6;
  const auto after = cost_now();
  if (!before || !after) return ended();
  cost.open_backend_us = static_cast<double>((after.value() - before.value()).cpu_ns) / 1e3 / sessions;
  return Status::ok();
}

void Fleet::count(Cost& cost) {
  for (uint32_t i = 0; i < cost.sessions; ++i) {
    const rpc::ClientSession& session = clients_->at(i);
    if (!session.is_open()) continue;
    ++cost.open;
    if ((session.grant().features & wire::kLaneRings) != 0) cost.lane_rings += lanes_ - 1;
    cost.region_bytes += session.grant().layout.request_bytes() + session.grant().layout.response_bytes();
  }
  const Footprint backend = Footprint::of(backend_.pids[0]).since(backend_before_);
  const Footprint own = Footprint::of(::getpid()).since(own_before_);
  cost.backend_descriptors = backend.descriptors;
  cost.own_descriptors = own.descriptors;
  cost.backend_pinned = backend.pinned;
  cost.own_pinned = own.pinned;
  const auto sessions = static_cast<double>(cost.sessions);
  cost.backend_bytes = static_cast<double>(backend.resident) / sessions;
  cost.own_bytes = static_cast<double>(own.resident) / sessions;
}

// Nobody asks anything. Twice a second every session is kept alive, and what comes of it is taken, as a worker does it.
Status Fleet::idle(Cost& cost) {
  ::nanosleep(&kSettle, nullptr);
  const auto before = cost_now();
  const uint64_t end_ns = monotonic_ns() + bench::seconds_to_ns(options_.seconds);
  for (uint64_t next_ns = monotonic_ns(); monotonic_ns() < end_ns && goes_on();) {
    if (monotonic_ns() >= next_ns) {
      next_ns += kKeepAliveNs;
      for (size_t i = 0; i < clients_->size(); ++i) clients_->at(i).keep_alive();
    }
    clients_->pass();
    clients_->rest(std::min(next_ns, end_ns));
  }
  const auto after = cost_now();
  if (!before || !after) return ended();
  const bench::ProcessCost used = after.value() - before.value();
  cost.idle_backend = static_cast<double>(used.cpu_ns) / static_cast<double>(used.wall_ns);
  cost.idle_own = static_cast<double>(used.own_cpu_ns) / static_cast<double>(used.wall_ns);
  return Status::ok();
}

void Fleet::time_passes(Cost& cost) {
  const uint64_t end_ns = monotonic_ns() + bench::seconds_to_ns(options_.seconds / 2);
  const uint64_t begun_ns = monotonic_ns();
  uint64_t passes = 0;
  uint64_t now_ns = begun_ns;
  for (; now_ns < end_ns; now_ns = monotonic_ns(), passes += kPasses) {
    for (uint64_t i = 0; i < kPasses; ++i) clients_->pass();
  }
  cost.pass_ns = static_cast<double>(now_ns - begun_ns) / static_cast<double>(std::max<uint64_t>(passes, 1));
}

Status Fleet::time_active(Cost& cost) {
  rpc::ClientSession& session = clients_->at(cost.sessions / 2);
  std::vector<double> took_us;
  const auto before = cost_now();
  const uint64_t end_ns = monotonic_ns() + bench::seconds_to_ns(options_.seconds);
  for (uint64_t begun_ns = monotonic_ns(); begun_ns < end_ns && !stop_.load();) {
    if (Status asked = clients_->ask(session); !asked) return Status::error(asked.message() + logs_of(backend_));
    const uint64_t now_ns = monotonic_ns();
    took_us.push_back(static_cast<double>(now_ns - begun_ns) / 1e3);
    begun_ns = now_ns;
  }
  const auto after = cost_now();
  if (!before || !after) return ended();
  if (took_us.empty()) return Status::error("interrupted");
  std::ranges::sort(took_us);
  cost.latency_us = took_us[took_us.size() / 2];
  cost.latency_p99_us = took_us[took_us.size() * 99 / 100];
  cost.active_backend_us =
      static_cast<double>((after.value() - before.value()).cpu_ns) / 1e3 / static_cast<double>(took_us.size());
  return Status::ok();
}

Status Fleet::restart(Restart& restart) {
  clients_->expect_losses();
  restart.sessions = static_cast<uint32_t>(clients_->size());
  rpc::SessionOptions usual;
  usual.address = asks_.address;
  usual.secret = asks_.secret;
  Bystander bystander(usual);
  if (Status again = bench::restart_backend(backend_, files_, meeting_); !again) return again;
  if (Status back = watch_return(*clients_, backend_, kPatience, stop_, restart); !back) {
    return Status::error(back.message() + logs_of(backend_));
  }
  bystander.tell(restart);
  return bystander.health();
}

bool is_listed(const std::vector<uint32_t>& list, uint32_t number) {
  return std::ranges::find(list, number) != list.end();
}

Status measure_all(const FleetOptions& options, const std::atomic<bool>& stop, uint32_t lanes,
                   const std::vector<uint32_t>& numbers, std::vector<Cost>& costs, Outcome& outcome) {
  const CostModel model = CostModel::of(options.at);
  for (const uint32_t sessions : numbers) {
    const uint64_t rings = std::min<uint64_t>(uint64_t{sessions} * (lanes - 1), kMostRings);
    const uint64_t needed =
        sessions * std::max(model.backend_descriptors, model.own_descriptors) + rings + kOtherDescriptors;
    if (const uint64_t limit = base::raise_descriptor_limit(needed); limit < needed) {
      outcome.left_out.push_back(std::to_string(sessions) + " sessions are left out: they take " +
                                 std::to_string(needed) + " descriptors, the limit is " + std::to_string(limit) +
                                 " (ulimit -Hn)");
      continue;
    }
    Fleet fleet(options, stop);
    if (Status started = fleet.start(lanes); !started) return started;
    Cost cost;
    if (Status measured = fleet.measure(sessions, cost); !measured) return measured;
    costs.push_back(cost);
    if (&costs != &outcome.of_backend || !is_listed(options.restarts, sessions)) continue;
    if (Status back = fleet.restart(outcome.restarts.emplace_back()); !back) return back;
  }
  return Status::ok();
}

}  // namespace

CostModel CostModel::of(const std::string& at) {
  if (at.starts_with("tcp")) return {.backend_descriptors = 2, .own_descriptors = 2};
  if (at.starts_with("rdma")) return {.backend_descriptors = 4, .own_descriptors = 4};
  return {.backend_descriptors = 4, .own_descriptors = 3};
}

Status measure(const FleetOptions& options, const std::atomic<bool>& stop, Outcome& outcome) {
  if (Status done = measure_all(options, stop, options.partitions, options.sessions, outcome.of_backend, outcome);
      !done)
    return done;
  return measure_all(options, stop, options.lanes, options.backends, outcome.of_proxy, outcome);
}

}  // namespace egret::bench_fleet
