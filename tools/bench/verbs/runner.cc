#include "bench_verbs/runner.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench_verbs/pairs/receiver.h"

namespace egret::bench_verbs {

using base::Status;

namespace {

constexpr double kWarmupShare = 0.25;
constexpr double kPatienceS = 30;  // beyond what a point takes

// What atomics were posted, and what the memory on the other side shows of them: each has added one.
uint64_t wrong_increments(const Point& point, const Figures& figures) {
  if (!is_atomic(point.kind)) return 0;
  return figures.increments == figures.posted.fetch_adds + figures.posted.compare_swaps ? 0 : kAtomicBytes;
}

void add(Figures& sum, const Figures& each, double share) {
  sum.ops += each.ops;
  sum.ops_per_s += each.ops_per_s;
  sum.posted.add(each.posted);
  sum.big_endian = std::max(sum.big_endian, each.big_endian);
  sum.wrong_bytes += each.wrong_bytes;
  sum.mean_us += each.mean_us * share;
  sum.p50_us += each.p50_us * share;
  sum.p99_us = std::max(sum.p99_us, each.p99_us);
}

}  // namespace

bool Runner::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  return false;
}

bool Runner::told(Station& station, const Message& message) {
  const Status sent = station.send(message);
  return sent.is_ok() || fail(sent.message());
}

Figures Runner::inbound(const Point& point) {
  Figures sum;
  Message run;
  run.type = Message::Type::kRun;
  run.point = point;
  std::vector<std::unique_ptr<Receivers>> receivers;
  for (Station* station : stations_) {
    PairSet& set = *station->set(point.set);
    set.slots().prepare(point);
    if (point.kind == Kind::kSend) receivers.push_back(std::make_unique<Receivers>(point, set));
  }
  for (Station* station : stations_) {
    if (!told(*station, run)) return sum;
  }
  const double seconds = static_cast<double>(point.warmup_ns + point.duration_ns) / 1e9;
  for (size_t i = 0; i < stations_.size(); ++i) {
    auto answer = stations_[i]->receive(Message::Type::kFigures, seconds + kPatienceS);
    if (!answer) return fail(answer.message()), sum;
    if (answer.value().length > 0) return fail(answer.value().words()), sum;
    Figures each = answer.value().figures;
    if (point.kind == Kind::kSend) {
      // What counts is what has arrived.
      const Figures arrived = receivers[i]->finish(each.posted.sends);
      each.ops = arrived.ops;
      each.ops_per_s = arrived.ops_per_s;
      each.wrong_bytes += arrived.wrong_bytes;
      sum.received += arrived.received;
    }
    const Slots& slots = stations_[i]->set(point.set)->slots();
    each.wrong_bytes += slots.check(point);
    if (is_atomic(point.kind)) sum.increments += slots.increments(point);
    add(sum, each, 1 / static_cast<double>(stations_.size()));
  }
  sum.wrong_bytes += wrong_increments(point, sum);
  return sum;
}

bool Runner::prepare_clients(const Point& point, const std::vector<Station*>& targets) {
  Message message;
  message.type = Message::Type::kPrepare;
  message.point = point;
  for (Station* station : targets) {
    if (!told(*station, message)) return false;
    if (auto ready = station->receive(Message::Type::kReady, kPatienceS); !ready) return fail(ready.message());
  }
  return true;
}

// What their memory shows, and, of SENDs, what they have received.
bool Runner::check_clients(const Point& point, const std::vector<Station*>& targets, Figures& figures) {
  Message message;
  message.type = Message::Type::kCheck;
  message.point = point;
  message.figures = figures;
  for (Station* station : targets) {
    if (!told(*station, message)) return false;
    auto checked = station->receive(Message::Type::kChecked, kPatienceS);
    if (!checked) return fail(checked.message());
    figures.wrong_bytes += checked.value().figures.wrong_bytes;
    figures.received += checked.value().figures.received;
    figures.increments += checked.value().figures.increments;
  }
  figures.wrong_bytes += wrong_increments(point, figures);
  return true;
}

Figures Runner::outbound(const Point& point, size_t clients) {
  const std::vector<Station*> targets(stations_.begin(), stations_.begin() + static_cast<ptrdiff_t>(clients));
  if (!prepare_clients(point, targets)) return {};
  std::vector<PairSet*> sets;
  sets.reserve(targets.size());
  for (Station* station : targets) sets.push_back(station->set(point.set));
  auto figures = run_point(point, sets, stop_);
  if (!figures) return fail(figures.message()), Figures{};
  if (!check_clients(point, targets, figures.value())) return {};
  return figures.value();
}

Point Runner::make_point(Kind kind, uint32_t size, uint32_t threads, bool pipelined) {
  Point point;
  point.kind = kind;
  point.size = is_atomic(kind) ? kAtomicBytes : size;
  point.set = kind == Kind::kSend ? Set::kDatagrams : Set::kConnected;
  point.threads = threads;
  point.queue_pairs = threads * wanted_.queue_pairs;
  const bool takes_read_depth = kind != Kind::kWrite && kind != Kind::kSend;
  point.depth = !pipelined ? 1 : takes_read_depth ? results_.read_pipelined : wanted_.depth;
  point.one_by_one = pipelined ? 0 : 1;
  point.number = next_number();
  point.duration_ns = static_cast<uint64_t>(wanted_.duration_s * 1e9);
  point.warmup_ns = static_cast<uint64_t>(wanted_.duration_s * kWarmupShare * 1e9);
  return point;
}

void Runner::tell(const std::string& what, const Figures& figures) {
  if (is_over()) return;
  ++results_.points;
  results_.wrong_bytes += figures.wrong_bytes;
  results_.posted.add(figures.posted);
  char text[160];
  std::snprintf(text, sizeof text, "%4llu of %u  %s: %.4g Mops/s%s", static_cast<unsigned long long>(results_.points),
                points_of(wanted_), what.c_str(), figures.ops_per_s / 1e6,
                figures.wrong_bytes > 0 ? ", WRONG BYTES" : "");
  say_(text);
}

}  // namespace egret::bench_verbs
