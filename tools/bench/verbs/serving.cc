// The connecting side's half of every point: does what it is told, within the memory and queue pairs it has agreed on.
#include <optional>

#include "bench_verbs/joining.h"
#include "bench_verbs/measurement.h"
#include "bench_verbs/pairs/receiver.h"
#include "bench_verbs/poster.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr double kIdlePatienceS = 600;  // while others are measured

bool fits(const Point& point, Station& station) {
  if (static_cast<uint32_t>(point.set) >= kSets || station.set(point.set) == nullptr) return false;
  PairSet& set = *station.set(point.set);
  const Shape& shape = set.slots().shape();
  const bool by_hand = point.set != Set::kConnected;
  const bool datagrams = by_hand && set.making().is_datagrams();
  if ((point.kind == Kind::kSend) != datagrams) return false;
  // A completion queue is one thread's, and has room for so many sends.
  if (by_hand && point.depth > set.making().depth) return false;
  if (by_hand && point.threads != set.making().threads && point.queue_pairs > set.making().threads) return false;
  const uint32_t most = point.kind == Kind::kFetch && shape.lead < kRequestBytes ? 0 : shape.max_size;
  return point.size >= 1 && point.size <= most && point.fetch <= most && point.depth >= 1 &&
         point.depth <= shape.depth && point.threads >= 1 && point.threads <= point.queue_pairs &&
         point.queue_pairs <= set.size() && point.duration_ns > 0 &&
         (!is_atomic(point.kind) || point.size == kAtomicBytes);
}

class Serving {
 public:
  Serving(Station& station, const std::atomic<bool>& stop) : station_(station), stop_(stop) {}
  Message prepare(const Point& point);
  Message check(const Message& message);
  Message run(const Point& point);

 private:
  Station& station_;
  const std::atomic<bool>& stop_;
  std::optional<Receivers> receivers_;  // between prepare and check of a point of SENDs
};

Message Serving::prepare(const Point& point) {
  receivers_.reset();
  PairSet& set = *station_.set(point.set);
  set.slots().prepare(point);
  if (point.kind == Kind::kSend) receivers_.emplace(point, set);
  Message answer;
  answer.type = Message::Type::kReady;
  return answer;
}

Message Serving::check(const Message& message) {
  Message answer;
  answer.type = Message::Type::kChecked;
  const Slots& slots = station_.set(message.point.set)->slots();
  answer.figures.wrong_bytes = slots.check(message.point);
  if (is_atomic(message.point.kind)) answer.figures.increments = slots.increments(message.point);
  if (!receivers_) return answer;
  const Figures arrived = receivers_->finish(message.figures.posted.sends);
  answer.figures.wrong_bytes += arrived.wrong_bytes;
  answer.figures.received = arrived.received;
  receivers_.reset();
  return answer;
}

Message Serving::run(const Point& point) {
  auto figures = run_point(point, {station_.set(point.set)}, stop_);
  Message answer;
  answer.type = Message::Type::kFigures;
  if (figures) answer.figures = figures.value();
  if (!figures) answer.set_text(figures.message());
  return answer;
}

}  // namespace

Expected<std::string> serve_points(Station& station, const std::atomic<bool>& stop) {
  using Type = Message::Type;
  Serving serving(station, stop);
  std::string report;
  while (!stop.load()) {
    auto received = station.receive(kIdlePatienceS);
    if (!received) return received.status();
    const Message& message = received.value();
    const bool is_point = message.type == Type::kPrepare || message.type == Type::kRun || message.type == Type::kCheck;
    if (is_point && !fits(message.point, station)) return Status::error("the other side asks for the impossible");
    Status done = Status::ok();
    switch (message.type) {
      case Type::kPrepare:
        done = station.send(serving.prepare(message.point));
        break;
      case Type::kCheck:
        done = station.send(serving.check(message));
        break;
      case Type::kRun:
        done = station.send(serving.run(message.point));
        break;
      case Type::kMake:
        done = answer_make(station, message);
        break;
      case Type::kText:
        report += message.words();
        break;
      case Type::kEnd:
        return report;
      default:
        return Status::error("the other side sends nonsense");
    }
    if (!done) return done;
  }
  return Status::error("interrupted");
}

}  // namespace egret::bench_verbs
