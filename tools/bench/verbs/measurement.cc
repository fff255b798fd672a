#include "bench_verbs/measurement.h"

#include <algorithm>
#include <iterator>

#include "bench_verbs/runner.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::kInboundRead:
      return "in-bound READ";
    case Direction::kInboundWrite:
      return "in-bound WRITE";
    default:
      return "out-bound WRITE";
  }
}

class Measurement {
 public:
  explicit Measurement(Runner& runner) : runner_(runner), wanted_(runner.wanted()), results_(runner.results()) {}
  void run();

 private:
  Figures measure_one(Direction direction, uint32_t size, uint32_t threads, bool pipelined);
  Both measure_both(Direction direction, uint32_t size, uint32_t threads);
  Figures measure_fetch(uint32_t value, uint32_t fetch, uint32_t threads, bool pipelined);
  void by_threads();
  void by_size();
  void fetches();

  Runner& runner_;
  const Wanted& wanted_;
  Results& results_;
};

Figures Measurement::measure_one(Direction direction, uint32_t size, uint32_t threads, bool pipelined) {
  if (runner_.is_over()) return {};
  const Kind kind = direction == Direction::kInboundRead ? Kind::kRead : Kind::kWrite;
  const Point point = runner_.make_point(kind, size, threads, pipelined);
  const Figures figures = direction == Direction::kOutboundWrite ? runner_.outbound(point) : runner_.inbound(point);
  runner_.tell(std::string(name_of(direction)) + ", " + std::to_string(size) + " B, " + std::to_string(threads) +
                   " threads, " + (pipelined ? "pipelined" : "unpipelined"),
               figures);
  return figures;
}

Both Measurement::measure_both(Direction direction, uint32_t size, uint32_t threads) {
  Both both;
  both.pipelined = measure_one(direction, size, threads, true);
  both.unpipelined = measure_one(direction, size, threads, false);
  return both;
}

void Measurement::by_threads() {
  double best[3] = {0, 0, 0};
  for (const uint32_t threads : wanted_.threads) {
    ByThreads row{.threads = threads, .of = {}, .by_clients = {}};
    for (const Direction direction : kDirections) {
      const auto at = static_cast<size_t>(direction);
      row.of[at] = measure_both(direction, kSmall, threads);
      if (row.of[at].pipelined.ops_per_s <= best[at]) continue;
      best[at] = row.of[at].pipelined.ops_per_s;
      results_.best_threads[at] = threads;
    }
    for (size_t clients = 1; clients < runner_.stations().size() && !runner_.is_over(); ++clients) {
      row.by_clients.push_back(runner_.outbound(runner_.make_point(Kind::kWrite, kSmall, threads, false), clients));
      runner_.tell("out-bound WRITE to " + std::to_string(clients) + " clients", row.by_clients.back());
    }
    row.by_clients.push_back(row.of[static_cast<size_t>(Direction::kOutboundWrite)].unpipelined);
    results_.by_threads.push_back(std::move(row));
  }
}

void Measurement::by_size() {
  for (const uint32_t size : wanted_.sizes) {
    BySize row{.size = size, .of = {}};
    for (const Direction direction : kDirections) {
      const auto at = static_cast<size_t>(direction);
      row.of[at] = measure_both(direction, size, results_.best_threads[at]);
    }
    results_.by_size.push_back(row);
  }
}

Figures Measurement::measure_fetch(uint32_t value, uint32_t fetch, uint32_t threads, bool pipelined) {
  if (runner_.is_over()) return {};
  Point point = runner_.make_point(Kind::kFetch, value + kResultOverhead, threads, pipelined);
  // A fetch takes F bytes also of a shorter result.
  point.fetch = fetch;
  point.size = std::max(point.size, fetch);
  const Figures figures = runner_.inbound(point);
  runner_.tell("WRITE and READ, value of " + std::to_string(value) + " B, F " + std::to_string(fetch), figures);
  return figures;
}

void Measurement::fetches() {
  const uint32_t threads = results_.best_threads[static_cast<size_t>(Direction::kInboundRead)];
  for (const uint32_t fetch : wanted_.fetch_sizes) {
    std::vector<Figures> row;
    row.reserve(wanted_.value_sizes.size());
    for (const uint32_t value : wanted_.value_sizes) row.push_back(measure_fetch(value, fetch, threads, true));
    results_.fetches.push_back(std::move(row));
  }
  const uint32_t smallest = wanted_.fetch_sizes.front();
  results_.fetch_latency = measure_fetch(kSmall, smallest, 1, false);
  results_.fetch_of_thread = measure_fetch(kSmall, smallest, 1, true);
}

void Measurement::run() {
  results_.read_depth = ~uint32_t{0};
  results_.inline_bytes = ~uint32_t{0};
  for (Station* station : runner_.stations()) {
    for (uint32_t i = 0; i < station->pairs(); ++i) {
      results_.read_depth = std::min(results_.read_depth, station->pair(i).read_depth());
      results_.inline_bytes = std::min(results_.inline_bytes, station->pair(i).inline_bytes());
    }
  }
  results_.read_pipelined = std::min(wanted_.depth, results_.read_depth);
  by_threads();
  by_size();
  fetches();
  measure_further(runner_, results_.further);
}

}  // namespace

uint32_t points_of(const Wanted& wanted) {
  const size_t rows = wanted.threads.size() * (6 + wanted.clients - 1);
  const size_t before = rows + wanted.sizes.size() * 6 + wanted.fetch_sizes.size() * wanted.value_sizes.size() + 2;
  const size_t atomics = wanted.no_atomics.empty() ? std::size(kAtomics) : 0;
  const bool sends_any = wanted.no_sends.empty();
  const size_t sends = sends_any ? wanted.threads.size() * 4 + wanted.sizes.size() * 2 : 0;
  const size_t swept = std::size(kSwept) - std::size(kAtomics) - (sends_any ? 0 : 1);
  const size_t sweep = wanted.sweep.size() * (swept + atomics) * 2;
  return static_cast<uint32_t>(before + wanted.threads.size() * atomics * 4 + sends + sweep);
}

Expected<Results> measure(const Wanted& wanted, const std::vector<Station*>& stations,
                          const std::function<void(const std::string&)>& say, const std::atomic<bool>& stop) {
  Runner runner(wanted, stations, say, stop);
  Measurement(runner).run();
  if (!runner.failure().empty()) return Status::error(runner.failure());
  if (stop.load()) return Status::error("interrupted");
  return runner.results();
}

Measured measured_of(const Wanted& wanted, const Results& results) {
  const auto read = static_cast<size_t>(Direction::kInboundRead);
  const auto write = static_cast<size_t>(Direction::kOutboundWrite);
  Measured measured;
  for (const BySize& row : results.by_size) {
    measured.inbound_read.push_back({row.size, row.of[read].pipelined.ops_per_s});
    measured.outbound_write.push_back({row.size, row.of[write].pipelined.ops_per_s});
  }
  for (const ByThreads& row : results.by_threads) {
    const double best = std::max(row.of[write].pipelined.ops_per_s, row.of[write].unpipelined.ops_per_s);
    measured.peak_outbound_write = std::max(measured.peak_outbound_write, best);
  }
  measured.read_us = results.by_threads.front().of[read].unpipelined.mean_us;
  measured.fetch_us = results.fetch_latency.mean_us;
  // That of one client's one thread: they all post at once, and share.
  measured.fetch_rate_of_thread = results.fetch_of_thread.ops_per_s / wanted.clients;
  measured.measured_depth = results.read_pipelined * wanted.queue_pairs;
  measured.read_depth = results.read_depth;
  measured.server_threads = wanted.server_threads;
  measured.fetch_p99_us = results.fetch_latency.p99_us;
  measured.wake_us = results.wake_us;
  constexpr size_t kReads = 0, kWrites = 1;  // of kSwept
  for (const ByPairs& row : results.further.sweep) {
    measured.by_pairs.push_back({row.pairs, row.of[kReads].inbound.ops_per_s, row.of[kWrites].outbound.ops_per_s});
  }
  return measured;
}

}  // namespace egret::bench_verbs
