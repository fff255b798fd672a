#include "bench_verbs/further.h"

#include <algorithm>

#include "bench_verbs/joining.h"
#include "bench_verbs/runner.h"

namespace egret::bench_verbs {

namespace {

constexpr uint32_t kSmallGuard = 32;  // of the sweep's slots: 64 bytes each
constexpr uint32_t kMostRecvs = 256;  // posted on a UD pair
constexpr uint32_t kSweepRecvs = 8;

class FurtherPoints {
 public:
  FurtherPoints(Runner& runner, Further& further) : runner_(runner), further_(further), wanted_(runner.wanted()) {}
  void atomics();
  void sends();
  void sweep();

 private:
  Joined make(const Making& making);
  Making sweep_of(Set set, uint32_t pairs) const;
  BothWays measure(const Point& point, const std::string& what);
  BothWays measure_threads(Kind kind, uint32_t size, uint32_t threads, bool pipelined);
  ByPairs sweep_row(uint32_t pairs, uint32_t read_depth);
  uint32_t clients() const { return static_cast<uint32_t>(runner_.stations().size()); }

  Runner& runner_;
  Further& further_;
  const Wanted& wanted_;
};

// The same point in both directions, each with bytes of its own.
BothWays FurtherPoints::measure(const Point& point, const std::string& what) {
  BothWays both;
  if (runner_.is_over()) return both;
  Point again = point;
  again.number = runner_.next_number();
  both.outbound = runner_.outbound(point);
  runner_.tell("out-bound " + what, both.outbound);
  if (runner_.is_over()) return both;
  both.inbound = runner_.inbound(again);
  runner_.tell("in-bound " + what, both.inbound);
  return both;
}

BothWays FurtherPoints::measure_threads(Kind kind, uint32_t size, uint32_t threads, bool pipelined) {
  const Point point = runner_.make_point(kind, size, threads, pipelined);
  return measure(point, std::string(name_of(kind)) + ", " + std::to_string(point.size) + " B, " +
                            std::to_string(threads) + " threads, " + (pipelined ? "pipelined" : "unpipelined"));
}

void FurtherPoints::atomics() {
  further_.no_atomics = wanted_.no_atomics;
  if (!further_.no_atomics.empty()) return;
  for (const uint32_t threads : wanted_.threads) {
    AtomicsByThreads row{.threads = threads, .one_by_one = {}, .pipelined = {}};
    for (size_t i = 0; i < std::size(kAtomics); ++i) {
      row.one_by_one[i] = measure_threads(kAtomics[i], kAtomicBytes, threads, false);
      row.pipelined[i] = measure_threads(kAtomics[i], kAtomicBytes, threads, true);
      for (const BothWays* both : {&row.one_by_one[i], &row.pipelined[i]}) {
        further_.big_endian = further_.big_endian || both->outbound.big_endian + both->inbound.big_endian > 0;
      }
    }
    further_.atomics.push_back(row);
  }
}

Joined FurtherPoints::make(const Making& making) {
  if (runner_.is_over()) return {};
  auto joined = make_sets(runner_.stations(), making);
  if (joined) return joined.value();
  runner_.fail(joined.message());
  return {};
}

void FurtherPoints::sends() {
  further_.no_sends = wanted_.no_sends;
  if (!further_.no_sends.empty()) return;
  Making making;
  making.set = Set::kDatagrams;
  making.threads = wanted_.threads.back() * wanted_.queue_pairs;  // a completion queue for each pair
  making.depth = wanted_.depth;
  further_.most_send = way_mtu(runner_.stations().front()->control().id());
  for (Station* station : runner_.stations()) {
    further_.most_send = std::min(further_.most_send, way_mtu(station->control().id()));
  }
  making.shape = {.queue_pairs = making.threads,
                  .max_size = std::max(std::min(further_.most_send, wanted_.sizes.back()), kSmall),
                  .depth = std::min(4 * wanted_.depth, kMostRecvs)};
  const Joined joined = make(making);
  if (joined.pairs < making.shape.queue_pairs) {
    further_.no_sends = joined.why.empty() ? "no UD queue pairs" : joined.why;
    return;
  }
  for (const uint32_t threads : wanted_.threads) {
    SendsByThreads row{.threads = threads, .one_by_one = {}, .pipelined = {}};
    row.one_by_one = measure_threads(Kind::kSend, kSmall, threads, false);
    row.pipelined = measure_threads(Kind::kSend, kSmall, threads, true);
    further_.sends.push_back(row);
  }
  for (const uint32_t size : wanted_.sizes) {
    if (size > further_.most_send) break;
    further_.sends_by_size.push_back({size, measure_threads(Kind::kSend, size, wanted_.threads.back(), true)});
  }
}

Making FurtherPoints::sweep_of(Set set, uint32_t pairs) const {
  Making making;
  making.set = set;
  making.threads = std::min(wanted_.threads.back(), pairs);
  making.depth = kSweepDepth;
  making.read_depth = kSweepDepth;
  making.shape = {.queue_pairs = pairs, .max_size = kSmall, .depth = kSweepDepth, .lead = 0, .guard = kSmallGuard};
  if (making.is_datagrams()) making.shape.lead = kRequestBytes;
  if (making.is_datagrams()) making.shape.depth = kSweepRecvs;
  return making;
}

ByPairs FurtherPoints::sweep_row(uint32_t pairs, uint32_t read_depth) {
  ByPairs row{.pairs = pairs * clients(), .of = {}};
  for (size_t i = 0; i < std::size(kSwept); ++i) {
    const Kind kind = kSwept[i];
    if (kind == Kind::kSend && !further_.no_sweep_sends.empty()) continue;
    if (is_atomic(kind) && !further_.no_atomics.empty()) continue;
    Point point = runner_.make_point(kind, kSmall, std::min(wanted_.threads.back(), pairs), true);
    point.set = kind == Kind::kSend ? Set::kSweepDatagrams : Set::kSweep;
    point.queue_pairs = pairs;
    point.depth = kind == Kind::kRead || is_atomic(kind) ? std::min(read_depth, kSweepDepth) : kSweepDepth;
    row.of[i] = measure(point, std::string(name_of(kind)) + " on " + std::to_string(row.pairs) + " queue pairs");
  }
  return row;
}

void FurtherPoints::sweep() {
  further_.no_sweep = wanted_.no_sweep;
  if (wanted_.sweep.empty()) return;
  const auto most = [this](uint32_t pairs) { return std::max(pairs / clients(), 1u); };  // with each client
  const Making making = sweep_of(Set::kSweep, most(wanted_.sweep.back()));
  further_.sweep_threads = making.threads;
  const Joined connected = make(making);
  further_.sweep_ends = connected.why;
  if (connected.pairs == 0) {
    further_.no_sweep = connected.why.empty() ? "no queue pairs" : connected.why;
    return;
  }
  further_.no_sweep_sends = further_.no_sends;
  if (further_.no_sends.empty()) {
    const Joined datagrams = make(sweep_of(Set::kSweepDatagrams, connected.pairs));
    if (datagrams.pairs < connected.pairs) further_.no_sweep_sends = datagrams.why + " (of UD)";
  }
  uint32_t last = 0;
  for (const uint32_t pairs : wanted_.sweep) {
    const uint32_t each = std::min(most(pairs), connected.pairs);
    if (each == last || runner_.is_over()) continue;
    last = each;
    further_.sweep.push_back(sweep_row(each, connected.read_depth));
  }
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kRead:
      return "READ";
    case Kind::kWrite:
      return "WRITE";
    case Kind::kFetchAdd:
      return "FETCH_ADD";
    case Kind::kCompareSwap:
      return "COMPARE_SWAP";
    case Kind::kSend:
      return "UD SEND";
    default:
      return "WRITE and READ";
  }
}

void measure_further(Runner& runner, Further& further) {
  FurtherPoints points(runner, further);
  points.atomics();
  points.sends();
  points.sweep();
}

}  // namespace egret::bench_verbs
