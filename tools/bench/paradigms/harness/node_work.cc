#include "bench_paradigms/harness/node_work.h"

#include <algorithm>
#include <ctime>

#include "bench/keyspace.h"
#include "bench/monotonic.h"
#include "bench_paradigms/harness/walk.h"
#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint64_t kDrainPatienceNs = 5 * bench::kNsPerSecond;
constexpr uint64_t kOpsPatienceNs = 120 * bench::kNsPerSecond;  // of a run by ops

uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * bench::kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

bool goes_on(const Seat& seat) {
  return !seat.gate.is_open() && !seat.gate.is_broken();
}

// --- a server core

// To the end of the phase. How long passes took that found something to do, in ns.
uint64_t serve_phase(Seat& seat) {
  uint64_t busy = 0;
  uint64_t at = bench::monotonic_ns();
  seat.gate.arrive();
  while (goes_on(seat)) {
    const bool has_served = seat.server->serve();
    const uint64_t now = bench::monotonic_ns();
    if (has_served) {
      busy += now - at;
    } else {
      seat.rest();
    }
    at = has_served ? now : bench::monotonic_ns();
  }
  return busy;
}

// What was spent in a window, for as long as a round is: the clients' windows are that long.
Spent scaled(uint64_t cpu, uint64_t busy, uint64_t window, uint64_t round) {
  if (window == 0) return {};
  const double scale = round == 0 ? 1 : static_cast<double>(round) / static_cast<double>(window);
  const double busy_share = static_cast<double>(busy) / static_cast<double>(window);
  const double spent = static_cast<double>(cpu) * scale;
  return {static_cast<uint64_t>(spent), static_cast<uint64_t>(std::min(spent, spent * busy_share))};
}

void serve(Seat& seat, const RunOrder& order, NodeOutcome& out) {
  out.is_server = true;
  out.walked = walk_of(*seat.server, seat.self, seat.plan, order.workload, order.load.ops);
  serve_phase(seat);  // ready
  serve_phase(seat);  // warm-up
  const uint64_t cpu = thread_cpu_ns();
  const uint64_t begun = bench::monotonic_ns();
  const uint64_t busy = serve_phase(seat);  // round
  const uint64_t window = bench::monotonic_ns() - begun;
  out.spent = scaled(thread_cpu_ns() - cpu, busy, window, order.round_ns);
  serve_phase(seat);  // drain
  out.trouble = seat.server->trouble();
}

// --- a client

void step(const Seat& seat, Driver& driver) {
  if (!driver.step()) seat.rest();
}

// The load goes on until all have come to the end of the phase.
void end_phase(const Seat& seat, Driver& driver) {
  seat.gate.arrive();
  while (goes_on(seat)) step(seat, driver);
}

void end_idle_phase(const Seat& seat) {
  seat.gate.arrive();
  while (goes_on(seat)) seat.rest();
}

// Until that time, or until all ops are answered.
void drive_until(const Seat& seat, Driver& driver, uint64_t end_ns) {
  while (!driver.is_finished() && bench::monotonic_ns() < end_ns && !seat.gate.is_broken()) step(seat, driver);
}

void drive_round(const Seat& seat, const RunOrder& order, Driver& driver, NodeOutcome& out) {
  const uint64_t cpu = thread_cpu_ns();
  const uint64_t begun = bench::monotonic_ns();
  driver.begin_round();
  drive_until(seat, driver, begun + (order.load.ops > 0 ? kOpsPatienceNs : order.round_ns));
  driver.end_round();
  out.round_ns = bench::monotonic_ns() - begun;
  out.spent.cpu = thread_cpu_ns() - cpu;
}

void drive(Seat& seat, const RunOrder& order, Knowledge& knowledge, NodeOutcome& out) {
  const uint32_t client = seat.self - seat.plan.servers;
  end_idle_phase(seat);                          // ready
  if (order.load.ops > 0) end_idle_phase(seat);  // the ops are the round's: there is no warm-up
  Driver driver({seat.plan, *seat.client, knowledge, order.workload, bench::monotonic_ns}, client,
                pace_of(seat.plan, order.load, client, bench::monotonic_ns()));
  if (order.load.ops == 0) {
    drive_until(seat, driver, bench::monotonic_ns() + order.warm_up_ns);
    end_phase(seat, driver);
  }
  drive_round(seat, order, driver, out);
  end_phase(seat, driver);
  driver.drain();
  drive_until(seat, driver, bench::monotonic_ns() + kDrainPatienceNs);
  end_phase(seat, driver);
  out.tally = driver.tally();
  out.trouble = seat.client->trouble();
}

}  // namespace

RunOrder order_of(const Setting& setting, const Case& one, bool next_only) {
  RunOrder order;
  order.workload = workload_of(setting, one, next_only);
  order.load = {one.rate, setting.ops};
  order.warm_up_ns = bench::seconds_to_ns(setting.warm_up_s);
  order.round_ns = setting.ops > 0 ? 0 : bench::seconds_to_ns(setting.round_s);
  return order;
}

std::shared_ptr<Knowledge> HarnessWork::knowledge_of(const RunOrder& order, uint32_t keys) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Knowledge> found = run_ == order.run ? knowledge_.lock() : nullptr;
  if (found == nullptr) {
    const Writers writers = order.workload.stores_puts ? order.workload.writers : Writers::kAny;
    found = std::make_shared<Knowledge>(keys, writers, order.workload.erases > 0);
    knowledge_ = found;
    run_ = order.run;
  }
  return found;
}

std::string HarnessWork::run(Seat& seat) {
  RunOrder order;
  NodeOutcome out;
  if (!read_notice(seat.order.workload, order)) return {};  // another build: judged by who gets nothing
  const VerbCounts loaded = seat.fabric.counts();
  if (seat.server != nullptr) {
    serve(seat, order, out);
  } else {
    const std::shared_ptr<Knowledge> knowledge = knowledge_of(order, seat.plan.keys->count());
    drive(seat, order, *knowledge, out);
  }
  out.verbs = seat.fabric.counts() - loaded;
  return to_notice(out);
}

}  // namespace egret::bench_paradigms
