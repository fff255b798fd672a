// What happened between two scrapes of one process: growth, rates, quotients, quantiles. What is not known is nothing,
// and never zero: no second scrape yet, no such metric, a quotient of nothing, a process started anew. Borrows the
// samples; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "top/exposition.h"

namespace egret::top {

// A time out of a histogram.
struct Quantile {
  double seconds = 0;
  bool beyond = false;  // it lies beyond the last finite bound, which `seconds` is
};

struct Bucket {
  double bound = 0;  // seconds, infinite for the last
  double count = 0;  // of what is at most that: cumulative
};

// As Prometheus' histogram_quantile: linear within a bucket. `buckets` ascend. Nothing if nothing is in them.
std::optional<Quantile> quantile(double q, const std::vector<Bucket>& buckets);

class Step {
 public:
  // `before` may be null: then only what is so now is known. `seconds` lie between the two.
  Step(const SampleSet* before, const SampleSet& now, double seconds);

  const SampleSet& now() const { return *now_; }
  bool has_rates() const { return before_ != nullptr && seconds_ > 0; }
  // The process is another one than before: its counters are not the old one's.
  bool has_restarted() const { return restarted_; }

  // A series that only one of the two has counts for nothing.
  std::optional<double> growth(std::string_view metric, Match match = {}) const;
  std::optional<double> rate(std::string_view metric, Match match = {}) const;
  // Of the growth, how much for each of `per`.
  std::optional<double> ratio(std::string_view metric, std::string_view per) const;
  // Of the growth of both, how much is `metric`'s: 0 to 1.
  std::optional<double> share(std::string_view metric, std::string_view other) const;
  // Of the growth of the histogram METRIC_bucket.
  std::optional<Quantile> quantile_of(double q, std::string_view metric) const;

  // A Step for each value of `label`, over the samples that carry it.
  struct Part;
  std::vector<Part> by_label(std::string_view label) const;

 private:
  const SampleSet* before_;
  const SampleSet* now_;
  double seconds_;
  bool restarted_ = false;
};

struct Step::Part {
  std::string_view value;  // of the label
  SampleSet before, now;
  double seconds = 0;

  Step step() const { return Step(seconds > 0 ? &before : nullptr, now, seconds); }  // borrows from this
};

}  // namespace egret::top
