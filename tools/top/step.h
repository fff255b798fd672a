// The change between two scrapes of one process: growth, rates, ratios, quantiles. An unknown value is nothing, never
// 0: there is no second scrape yet, no such metric, a ratio to no growth, or the process was restarted. Borrows the
// samples; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "top/exposition.h"

namespace egret::top {

// A quantile of a histogram of times.
struct Quantile {
  double seconds = 0;
  bool beyond = false;  // it is more than `seconds`, the last finite bound
};

struct Bucket {
  double bound = 0;  // seconds, infinite for the last
  double count = 0;  // cumulative
};

// As Prometheus' histogram_quantile: linear within a bucket. `buckets` are sorted. Nothing if they are empty.
std::optional<Quantile> quantile(double q, const std::vector<Bucket>& buckets);

class Step {
 public:
  // `before` may be null: then only present values are known. `seconds`: the time between the two.
  Step(const SampleSet* before, const SampleSet& now, double seconds);

  const SampleSet& now() const { return *now_; }
  bool has_rates() const { return before_ != nullptr && seconds_ > 0; }
  // Whether the process is another one than before, with other counters.
  bool has_restarted() const { return restarted_; }

  // Ignores a series that only one of the two scrapes has.
  std::optional<double> growth(std::string_view metric, Match match = {}) const;
  std::optional<double> rate(std::string_view metric, Match match = {}) const;
  // The growth of `metric` divided by that of `per`.
  std::optional<double> ratio(std::string_view metric, std::string_view per) const;
  // The growth of `metric` divided by that of both together: 0 to 1.
  std::optional<double> share(std::string_view metric, std::string_view other) const;
  // The quantile of the growth of the histogram METRIC_bucket.
  std::optional<Quantile> quantile_of(double q, std::string_view metric) const;

  // A Step for each value of `label`, over the samples with that label.
  struct Part;
  std::vector<Part> by_label(std::string_view label) const;

 private:
  const SampleSet* before_;
  const SampleSet* now_;
  double seconds_;
  bool restarted_ = false;
};

struct Step::Part {
  std::string_view value;  // the label's
  SampleSet before, now;
  double seconds = 0;

  Step step() const { return Step(seconds > 0 ? &before : nullptr, now, seconds); }  // borrows from this
};

}  // namespace egret::top
