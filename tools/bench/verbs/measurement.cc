#include "bench_verbs/measurement.h"

#include <algorithm>
#include <cstdio>

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr double kWarmupShare = 0.25;
constexpr double kPatienceS = 30;       // beyond what a point takes
constexpr double kIdlePatienceS = 600;  // of the connecting side, while others are measured

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
  Measurement(const Wanted& wanted, const std::vector<Station*>& stations,
              const std::function<void(const std::string&)>& say, const std::atomic<bool>& stop)
      : wanted_(wanted), stations_(stations), say_(say), stop_(stop) {}
  Expected<Results> run();

 private:
  Figures inbound(Point point);
  Figures outbound(Point point, size_t clients);
  Figures measure_one(Direction direction, uint32_t size, uint32_t threads, bool pipelined);
  Both measure_both(Direction direction, uint32_t size, uint32_t threads);
  Figures measure_fetch(uint32_t value, uint32_t fetch, uint32_t threads, bool pipelined);
  Point make_point(Kind kind, uint32_t size, uint32_t threads, bool pipelined);
  void by_threads();
  void by_size();
  void fetches();
  void tell(const std::string& what, const Figures& figures);
  bool told(Station& station, const Message& message);
  bool fail(const std::string& why);
  bool is_over() { return !failure_.empty() || stop_.load(); }

  const Wanted& wanted_;
  const std::vector<Station*>& stations_;
  const std::function<void(const std::string&)>& say_;
  const std::atomic<bool>& stop_;
  Results results_;
  uint32_t number_ = 0;
  std::string failure_;
};

bool Measurement::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  return false;
}

// Sends, and waits for the answer that belongs to it, whose figures stay in the message.
bool Measurement::told(Station& station, const Message& message) {
  const Status sent = station.send(message);
  return sent.is_ok() || fail(sent.message());
}

Figures Measurement::inbound(Point point) {
  Figures sum;
  Message run;
  run.type = Message::Type::kRun;
  run.point = point;
  for (Station* station : stations_) station->prepare(point);
  for (Station* station : stations_) {
    if (!told(*station, run)) return sum;
  }
  const double seconds = static_cast<double>(point.warmup_ns + point.duration_ns) / 1e9;
  for (Station* station : stations_) {
    auto answer = station->receive(Message::Type::kFigures, seconds + kPatienceS);
    if (!answer) return fail(answer.message()), sum;
    const Figures& each = answer.value().figures;
    if (answer.value().length > 0) return fail(answer.value().words()), sum;
    const double n = static_cast<double>(stations_.size());
    sum.ops += each.ops;
    sum.reads += each.reads;
    sum.writes += each.writes;
    sum.ops_per_s += each.ops_per_s;
    sum.wrong_bytes += each.wrong_bytes + station->check(point);
    sum.mean_us += each.mean_us / n;
    sum.p50_us += each.p50_us / n;
    sum.p99_us = std::max(sum.p99_us, each.p99_us);
  }
  return sum;
}

Figures Measurement::outbound(Point point, size_t clients) {
  const std::vector<Station*> targets(stations_.begin(), stations_.begin() + static_cast<ptrdiff_t>(clients));
  Message message;
  message.point = point;
  for (Station* station : targets) {
    message.type = Message::Type::kPrepare;
    if (!told(*station, message)) return {};
    if (auto ready = station->receive(Message::Type::kReady, kPatienceS); !ready)
      return fail(ready.message()), Figures{};
  }
  auto figures = run_point(point, targets, stop_);
  if (!figures) return fail(figures.message()), Figures{};
  for (Station* station : targets) {
    message.type = Message::Type::kCheck;
    if (!told(*station, message)) return {};
    auto checked = station->receive(Message::Type::kChecked, kPatienceS);
    if (!checked) return fail(checked.message()), Figures{};
    figures.value().wrong_bytes += checked.value().figures.wrong_bytes;
  }
  return figures.value();
}

Point Measurement::make_point(Kind kind, uint32_t size, uint32_t threads, bool pipelined) {
  Point point;
  point.kind = kind;
  point.size = size;
  point.threads = threads;
  point.queue_pairs = wanted_.queue_pairs;
  const uint32_t most = kind == Kind::kWrite ? wanted_.depth : results_.read_pipelined;
  point.depth = pipelined ? most : 1;
  point.number = ++number_;
  point.duration_ns = static_cast<uint64_t>(wanted_.duration_s * 1e9);
  point.warmup_ns = static_cast<uint64_t>(wanted_.duration_s * kWarmupShare * 1e9);
  return point;
}

void Measurement::tell(const std::string& what, const Figures& figures) {
  if (is_over()) return;
  ++results_.points;
  results_.wrong_bytes += figures.wrong_bytes;
  results_.reads += figures.reads;
  results_.writes += figures.writes;
  char text[160];
  std::snprintf(text, sizeof text, "%4llu of %u  %s: %.4g Mops/s%s", static_cast<unsigned long long>(results_.points),
                points_of(wanted_), what.c_str(), figures.ops_per_s / 1e6,
                figures.wrong_bytes > 0 ? ", WRONG BYTES" : "");
  say_(text);
}

Figures Measurement::measure_one(Direction direction, uint32_t size, uint32_t threads, bool pipelined) {
  if (is_over()) return {};
  const Kind kind = direction == Direction::kInboundRead ? Kind::kRead : Kind::kWrite;
  const Point point = make_point(kind, size, threads, pipelined);
  const Figures figures = direction == Direction::kOutboundWrite ? outbound(point, stations_.size()) : inbound(point);
  tell(std::string(name_of(direction)) + ", " + std::to_string(size) + " B, " + std::to_string(threads) + " threads, " +
           (pipelined ? "pipelined" : "unpipelined"),
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
    for (size_t clients = 1; clients < stations_.size() && !is_over(); ++clients) {
      row.by_clients.push_back(outbound(make_point(Kind::kWrite, kSmall, threads, false), clients));
      tell("out-bound WRITE to " + std::to_string(clients) + " clients", row.by_clients.back());
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
  if (is_over()) return {};
  Point point = make_point(Kind::kFetch, value + kResultOverhead, threads, pipelined);
  // A fetch takes F bytes also of a shorter result.
  point.fetch = fetch;
  point.size = std::max(point.size, fetch);
  const Figures figures = inbound(point);
  tell("WRITE and READ, value of " + std::to_string(value) + " B, F " + std::to_string(fetch), figures);
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

Expected<Results> Measurement::run() {
  results_.read_depth = ~uint32_t{0};
  results_.inline_bytes = ~uint32_t{0};
  for (Station* station : stations_) {
    for (uint32_t i = 0; i < station->pairs(); ++i) {
      results_.read_depth = std::min(results_.read_depth, station->pair(i).read_depth());
      results_.inline_bytes = std::min(results_.inline_bytes, station->pair(i).inline_bytes());
    }
  }
  results_.read_pipelined = std::min(wanted_.depth, results_.read_depth);
  by_threads();
  by_size();
  fetches();
  if (!failure_.empty()) return Status::error(failure_);
  if (stop_.load()) return Status::error("interrupted");
  return results_;
}

}  // namespace

uint32_t points_of(const Wanted& wanted) {
  const size_t rows = wanted.threads.size() * (6 + wanted.clients - 1);
  return static_cast<uint32_t>(rows + wanted.sizes.size() * 6 + wanted.fetch_sizes.size() * wanted.value_sizes.size() +
                               2);
}

Expected<Results> measure(const Wanted& wanted, const std::vector<Station*>& stations,
                          const std::function<void(const std::string&)>& say, const std::atomic<bool>& stop) {
  return Measurement(wanted, stations, say, stop).run();
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
  return measured;
}

namespace {
// What the listening side asks for must lie within the memory and queue pairs it has agreed on.
bool fits(const Point& point, const Station& station) {
  const Shape& shape = station.shape();
  return point.size <= shape.max_size && point.fetch <= shape.max_size && point.depth >= 1 &&
         point.depth <= shape.depth && point.threads >= 1 && point.queue_pairs >= 1 &&
         uint64_t{point.threads} * point.queue_pairs <= station.pairs() && point.duration_ns > 0;
}
}  // namespace

Expected<std::string> serve_points(Station& station, const std::atomic<bool>& stop) {
  std::string report;
  while (!stop.load()) {
    auto received = station.receive(kIdlePatienceS);
    if (!received) return received.status();
    const Message& message = received.value();
    const bool is_point = message.type == Message::Type::kPrepare || message.type == Message::Type::kRun ||
                          message.type == Message::Type::kCheck;
    if (is_point && !fits(message.point, station)) return Status::error("the other side asks for the impossible");
    Message answer;
    switch (message.type) {
      case Message::Type::kPrepare:
        station.prepare(message.point);
        answer.type = Message::Type::kReady;
        break;
      case Message::Type::kCheck:
        answer.type = Message::Type::kChecked;
        answer.figures.wrong_bytes = station.check(message.point);
        break;
      case Message::Type::kRun: {
        auto figures = run_point(message.point, {&station}, stop);
        answer.type = Message::Type::kFigures;
        if (figures) answer.figures = figures.value();
        if (!figures) answer.set_text(figures.message());
        break;
      }
      case Message::Type::kText:
        report += message.words();
        continue;
      case Message::Type::kEnd:
        return report;
      default:
        return Status::error("the other side sends nonsense");
    }
    if (Status sent = station.send(answer); !sent) return sent;
  }
  return Status::error("interrupted");
}

}  // namespace egret::bench_verbs
