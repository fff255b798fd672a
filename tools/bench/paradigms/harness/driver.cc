#include "bench_paradigms/harness/driver.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "bench/keyspace.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kPolledAtOnce = 16;
constexpr uint32_t kMostRedraws = 16;  // of writes whose key is being written
constexpr double kNsPerSecond = 1e9;

uint64_t ticket_of(uint32_t place, uint32_t turn) {
  return uint64_t{turn} << 32 | place;
}

}  // namespace

Pace pace_of(const Plan& plan, const Load& load, uint32_t client, uint64_t now_ns) {
  Pace pace{.window = plan.window, .interval_ns = 0, .first_due_ns = now_ns};
  if (load.ops > 0) pace.ops = share_of(load.ops, plan.clients, client);
  if (load.rate > 0) {
    const double each_ns = kNsPerSecond / load.rate;
    pace.interval_ns = std::max<uint64_t>(1, static_cast<uint64_t>(each_ns * plan.clients));
    pace.first_due_ns += static_cast<uint64_t>(each_ns * client);
  }
  return pace;
}

Driver::Driver(const Parts& parts, uint32_t client, const Pace& pace)
    : plan_(parts.plan),
      node_(parts.node),
      judge_(parts.knowledge, parts.plan.value_bytes),
      workload_(parts.workload, client),
      clock_(parts.clock),
      pace_(pace),
      next_version_(kLoadedVersion + 1 + client),
      version_step_(parts.plan.clients),
      value_(parts.plan.value_bytes, '\0'),
      places_(pace.window),
      next_due_ns_(pace.first_due_ns) {
  for (uint32_t place = 0; place < pace.window; ++place) free_.push_back(place);
}

bool Driver::step() {
  std::array<Result, kPolledAtOnce> results;
  const uint32_t found = node_.poll(results);
  const uint64_t now = clock_();
  for (uint32_t i = 0; i < found; ++i) take(results[i], now);
  bool has_begun = false;
  while (may_begin(now) && begin(now)) has_begun = true;
  return found > 0 || has_begun;
}

bool Driver::may_begin(uint64_t now) {
  if (is_draining_ || begun_ >= pace_.ops || free_.empty()) return false;
  return pace_.interval_ns == 0 || next_due_ns_ <= now;
}

// The next op that may be begun, in drawn_. False: every one drawn was a write of a key that is being written.
bool Driver::draw() {
  for (uint32_t tries = 0; tries < kMostRedraws && !drawn_; ++tries) {
    const Draw draw = workload_.draw();
    Expectation expectation;
    if (!judge_.begin(draw.kind, draw.key, next_version_, expectation)) continue;
    if (draw.kind == OpKind::kPut || draw.kind == OpKind::kErase) next_version_ += version_step_;
    drawn_ = expectation;
  }
  return drawn_.has_value();
}

bool Driver::begin(uint64_t now) {
  if (!draw()) return false;
  const uint32_t at = free_.back();
  Place& place = places_[at];
  Op op;
  op.kind = drawn_->kind;
  op.key_number = drawn_->key;
  op.key = plan_.keys->key(op.key_number);
  if (op.kind == OpKind::kPut) {
    bench::write_value(value_.data(), value_.size(), op.key_number, drawn_->version);
    op.value = value_;
  }
  op.ticket = ticket_of(at, place.turn + 1);
  if (!node_.begin(op)) return false;
  free_.pop_back();
  const bool is_open = pace_.interval_ns != 0;
  place = {*drawn_, is_open ? next_due_ns_ : now, place.turn + 1, true};
  drawn_.reset();
  next_due_ns_ += pace_.interval_ns;
  ++begun_;
  ++under_way_;
  return true;
}

void Driver::take(const Result& result, uint64_t now) {
  const auto at = static_cast<uint32_t>(result.ticket);
  if (at >= places_.size() || !places_[at].is_taken || result.ticket != ticket_of(at, places_[at].turn)) {
    return note(Fault::kUnasked, 0);
  }
  Place& place = places_[at];
  place.is_taken = false;
  free_.push_back(at);
  --under_way_;
  note(judge_.judge(place.expectation, result.outcome, result.value), place.expectation.key);
  count(place.expectation, result.outcome);
  if (place.expectation.kind == OpKind::kNext && result.outcome == Outcome::kHit) count_number(result.value);
  const bool is_answered = result.outcome != Outcome::kFailed && result.outcome != Outcome::kLost;
  if (!is_measuring_ || !is_answered) return;
  ++tally_.measured_ops;
  tally_.latency.record(now > place.since_ns ? now - place.since_ns : 0);
}

void Driver::count(const Expectation& expectation, Outcome outcome) {
  ++tally_.ops;
  if (expectation.kind == OpKind::kGet) ++tally_.gets;
  switch (outcome) {
    case Outcome::kHit:
      ++tally_.hits;
      break;
    case Outcome::kMiss:
      ++tally_.misses;
      break;
    case Outcome::kDone:
      ++tally_.done;
      break;
    case Outcome::kFull:
      ++tally_.full;
      break;
    case Outcome::kLost:
      ++tally_.lost;
      break;
    case Outcome::kFailed:
      ++tally_.failed;
      break;
  }
}

void Driver::count_number(std::string_view value) {
  uint64_t number = 0;
  if (value.size() != sizeof number) return;
  std::memcpy(&number, value.data(), sizeof number);
  tally_.numbers.take(number);
}

void Driver::note(Fault fault, uint32_t key) {
  if (fault == Fault::kNone) return;
  ++tally_.faults[static_cast<size_t>(fault)];
  if (tally_.first_wrong != Fault::kNone) return;
  tally_.first_wrong = fault;
  tally_.first_wrong_key = key;
}

void Driver::drain() {
  is_draining_ = true;
  if (drawn_) judge_.give_up(*drawn_);
  drawn_.reset();
}

Tally Driver::tally() const {
  Tally out = tally_;
  out.unanswered = under_way_;
  return out;
}

}  // namespace egret::bench_paradigms
