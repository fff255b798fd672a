// One run of one paradigm over the memory fabric: all nodes in this thread, which steps them in an order drawn from the
// seed. What is counted is exact and the same every time; times mean nothing.
#pragma once

#include <atomic>

#include "bench/keyspace.h"
#include "bench_paradigms/harness/rounds.h"

namespace egret::bench_paradigms {

// Setting::ops > 0. A run that stands still is given up after some seconds: see Tally::unanswered.
class MemoryRunner final : public Runner {
 public:
  explicit MemoryRunner(const Setting& setting) : setting_(setting), keys_(setting.keys, setting.key_bytes) {}

  base::Expected<RunAnswer> run(const Paradigm& paradigm, const Case& one, const std::atomic<bool>& stop) override;
  Capabilities capabilities() const override;

 private:
  const Setting& setting_;
  bench::Keyspace keys_;
};

}  // namespace egret::bench_paradigms
