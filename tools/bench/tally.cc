#include "bench/tally.h"

namespace egret::bench {

Counters& Counters::operator+=(const Counters& other) {
  requests += other.requests;
  hits += other.hits;
  misses += other.misses;
  stored += other.stored;
  errors += other.errors;
  asked_keys += other.asked_keys;
  asked_sets += other.asked_sets;
  return *this;
}

Counters Counters::operator-(const Counters& before) const {
  Counters difference;
  difference.requests = requests - before.requests;
  difference.hits = hits - before.hits;
  difference.misses = misses - before.misses;
  difference.stored = stored - before.stored;
  difference.errors = errors - before.errors;
  difference.asked_keys = asked_keys - before.asked_keys;
  difference.asked_sets = asked_sets - before.asked_sets;
  return difference;
}

void Tally::set_window(uint64_t from_ns, uint64_t until_ns, bool by_intended_time) {
  from_ns_ = from_ns;
  until_ns_ = until_ns;
  by_intended_time_ = by_intended_time;
}

void Tally::answered(uint64_t intended_ns, uint64_t now_ns) {
  ++counters.requests;
  const uint64_t reference = by_intended_time_ ? intended_ns : now_ns;
  if (reference >= from_ns_ && reference < until_ns_) latency.record(now_ns - intended_ns);
}

void Tally::failed(std::string_view what) {
  ++counters.errors;
  if (first_error.empty()) first_error = what;
}

void Tally::merge(const Tally& other) {
  counters += other.counters;
  latency.merge(other.latency);
  if (first_error.empty()) first_error = other.first_error;
}

}  // namespace egret::bench
