#include "bench_verbs/pairs/receiver.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <sched.h>

#include "bench/monotonic.h"

namespace egret::bench_verbs {

namespace {

constexpr uint64_t kNothing = ~uint64_t{0};
constexpr uint64_t kLate = kNothing - 1;                 // something of an earlier point
constexpr uint64_t kQuietNs = bench::kNsPerSecond / 10;  // after so long nothing more comes
constexpr uint64_t kGraceNs = bench::kNsPerSecond;       // and after so long what looks wrong is wrong
constexpr int kPollBatch = 32;
constexpr uint32_t kPatientPolls = 1024;  // empty ones before the processor is given away

}  // namespace

Receivers::Receivers(const Point& point, PairSet& pairs)
    : point_(point),
      pairs_(pairs),
      held_(size_t{pairs.making().shape.queue_pairs} * pairs.making().shape.depth, kNothing) {
  for (uint32_t i = 0; i < point.threads; ++i) taken_.push_back(std::make_unique<Taken>());
  for (uint32_t i = 0; i < point.threads; ++i) threads_.emplace_back([this, i] { run(i); });
}

Receivers::~Receivers() {
  stop();
}

void Receivers::stop() {
  stopping_.store(true);
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Receivers::take(const ibv_wc& wc, uint64_t now, Taken& taken) {
  const auto buffer = static_cast<uint32_t>(wc.wr_id);
  if (wc.status != IBV_WC_SUCCESS) return;  // of a queue pair that is going away
  const SendLabel label = SendLabel::of(ntohl(wc.imm_data));
  if (label.point == (point_.number & SendLabel::kPointMask)) {
    held_[buffer] = label.packed();
    if (wc.byte_len != kGrhBytes + point_.size) taken.strange += point_.size;
    if (taken.first_ns == 0) taken.first_ns = now;
    taken.last_ns = now;
    const uint64_t begin = taken.first_ns + point_.warmup_ns;
    if (now >= begin && now < begin + point_.duration_ns) ++taken.in_window;
    taken.all.fetch_add(1, std::memory_order_relaxed);
  } else {
    held_[buffer] = kLate;
  }
  if (!pairs_.post_receive(buffer)) taken.strange += point_.size;
}

std::vector<ibv_cq*> Receivers::queues_of(uint32_t thread) const {
  std::vector<ibv_cq*> queues;
  for (uint32_t pair = thread; pair < point_.queue_pairs; pair += point_.threads) {
    if (ibv_cq* const queue = pairs_.arrivals(pair); queues.empty() || queues.back() != queue) queues.push_back(queue);
  }
  return queues;
}

void Receivers::run(uint32_t thread) {
  const std::vector<ibv_cq*> queues = queues_of(thread);
  std::array<ibv_wc, kPollBatch> arrived{};
  uint32_t empty = 0;
  for (size_t next = 0; !stopping_.load(std::memory_order_relaxed); next = (next + 1) % queues.size()) {
    const int found = ibv_poll_cq(queues[next], kPollBatch, arrived.data());
    if (found > 0) {
      const uint64_t now = bench::monotonic_ns();
      for (int i = 0; i < found; ++i) take(arrived[static_cast<size_t>(i)], now, *taken_[thread]);
      empty = 0;
    } else if (++empty >= kPatientPolls) {
      empty = 0;
      sched_yield();
    }
  }
}

uint64_t Receivers::received() const {
  uint64_t sum = 0;
  for (const auto& each : taken_) sum += each->all.load(std::memory_order_relaxed);
  return sum;
}

void Receivers::wait_for_quiet(uint64_t sent) const {
  uint64_t before = received();
  uint64_t changed_ns = bench::monotonic_ns();
  while (before < sent && bench::monotonic_ns() - changed_ns < kQuietNs) {
    pause_briefly();
    const uint64_t now = received();
    if (now != before) changed_ns = bench::monotonic_ns();
    before = now;
  }
}

// A buffer that nothing came to is as it was; else, but for what was late, it has the bytes that its last label names, behind the GRH.
uint64_t Receivers::wrong() const {
  const Shape& shape = pairs_.making().shape;
  uint64_t wrong = 0;
  for (uint32_t buffer = 0; buffer < held_.size(); ++buffer) {
    const std::byte* const at = pairs_.slots().target_slot(buffer / shape.depth, buffer % shape.depth);
    const std::byte* const payload = at + shape.lead;
    if (held_[buffer] == kLate) continue;
    if (held_[buffer] == kNothing) {
      wrong += unpoisoned_bytes(at, shape.slot_bytes());
      continue;
    }
    const SendLabel label = SendLabel::of(static_cast<uint32_t>(held_[buffer]));
    wrong += unpoisoned_bytes(at, shape.lead - kGrhBytes);
    wrong += wrong_bytes(payload, point_.size, point_.number, label.pair, label.slot);
    wrong += unpoisoned_bytes(payload + point_.size, shape.guard);
  }
  return wrong;
}

bool Receivers::take_rest() {
  bool any = false;
  for (uint32_t thread = 0; thread < point_.threads; ++thread) {
    for (ibv_cq* const queue : queues_of(thread)) {
      ibv_wc wc{};
      for (; ibv_poll_cq(queue, 1, &wc) > 0; any = true) take(wc, bench::monotonic_ns(), *taken_[thread]);
    }
  }
  return any;
}

// On a slow device something may come when all seemed quiet: into a buffer that is being compared. Its completion tells.
uint64_t Receivers::compare() {
  for (;;) {
    (void)take_rest();
    const uint64_t seen = wrong();
    if (seen == 0) return 0;
    const uint64_t deadline = bench::monotonic_ns() + kGraceNs;
    bool any = false;
    while (!any && bench::monotonic_ns() < deadline) {
      pause_briefly();
      any = take_rest();
    }
    if (!any) return seen;
  }
}

Figures Receivers::finish(uint64_t sent) {
  wait_for_quiet(sent);
  stop();
  Figures figures;
  figures.wrong_bytes = compare();
  figures.received = received();
  const double window_s = static_cast<double>(point_.duration_ns) / 1e9;
  for (const auto& each : taken_) {
    figures.ops += each->in_window;
    figures.ops_per_s += static_cast<double>(each->in_window) / window_s;
    figures.wrong_bytes += each->strange;
    // All within the warm-up, on a slow device: then that is what there is.
    const uint64_t all = each->all.load();
    if (each->in_window > 0 || all == 0) continue;
    figures.ops += all;
    figures.ops_per_s +=
        static_cast<double>(all) * 1e9 /
        static_cast<double>(std::max<uint64_t>(each->last_ns - each->first_ns, point_.warmup_ns + point_.duration_ns));
  }
  return figures;
}

}  // namespace egret::bench_verbs
