#include "top/step.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace egret::top {

namespace {

constexpr std::string_view kStart = "process_start_time_seconds";

// By the start time; if there is none, by any counter that decreased.
bool is_another_process(const SampleSet& before, const SampleSet& now) {
  if (before.sum(kStart) != now.sum(kStart)) return true;
  for (const auto& [metric, series] : now.metrics()) {
    if (!metric.ends_with("_total")) continue;
    const SampleSet::Series& old = before.series(metric);
    for (const auto& [written, sample] : series) {
      const auto last = old.find(written);
      if (last != old.end() && sample->value < last->second->value) return true;
    }
  }
  return false;
}

std::optional<double> bound_of(const Sample& sample) {
  const std::string* le = sample.label("le");
  if (le == nullptr) return std::nullopt;
  if (*le == "+Inf") return std::numeric_limits<double>::infinity();
  double bound = 0;
  const auto [end, error] = std::from_chars(le->data(), le->data() + le->size(), bound);
  if (error != std::errc() || end != le->data() + le->size() || !std::isfinite(bound)) return std::nullopt;
  return bound;
}

}  // namespace

std::optional<Quantile> quantile(double q, const std::vector<Bucket>& buckets) {
  const double total = buckets.empty() ? 0 : buckets.back().count;
  if (!(total > 0)) return std::nullopt;
  double low = 0, below = 0;
  for (const auto& [bound, count] : buckets) {
    if (count >= q * total && count > below) {
      if (std::isinf(bound)) return Quantile{low, true};
      return Quantile{low + (bound - low) * (q * total - below) / (count - below), false};
    }
    if (!std::isinf(bound)) low = bound;
    below = std::max(below, count);
  }
  return Quantile{low, true};
}

Step::Step(const SampleSet* before, const SampleSet& now, double seconds)
    : before_(before), now_(&now), seconds_(seconds) {
  restarted_ = before != nullptr && is_another_process(*before, now);
  if (restarted_) before_ = nullptr;
}

std::optional<double> Step::growth(std::string_view metric, Match match) const {
  if (before_ == nullptr) return std::nullopt;
  std::optional<double> growth;
  const SampleSet::Series& old = before_->series(metric);
  for (const auto& [written, sample] : now_->series(metric)) {
    const auto last = old.find(written);
    if (last == old.end() || !match.takes(*sample)) continue;
    growth = growth.value_or(0) + std::max(0.0, sample->value - last->second->value);
  }
  return growth;
}

std::optional<double> Step::rate(std::string_view metric, Match match) const {
  const auto grown = seconds_ > 0 ? growth(metric, match) : std::nullopt;
  if (!grown) return std::nullopt;
  return *grown / seconds_;
}

std::optional<double> Step::ratio(std::string_view metric, std::string_view per) const {
  const auto part = growth(metric), whole = growth(per);
  if (!part || !whole || *whole == 0) return std::nullopt;
  return *part / *whole;
}

std::optional<double> Step::share(std::string_view metric, std::string_view other) const {
  const auto part = growth(metric), rest = growth(other);
  if (!part || !rest || *part + *rest == 0) return std::nullopt;
  return *part / (*part + *rest);
}

std::optional<Quantile> Step::quantile_of(double q, std::string_view metric) const {
  if (before_ == nullptr) return std::nullopt;
  const std::string name = std::string(metric) + "_bucket";
  const SampleSet::Series& old = before_->series(name);
  std::map<double, double> counts;
  for (const auto& [written, sample] : now_->series(name)) {
    const auto last = old.find(written);
    const auto bound = bound_of(*sample);
    if (last != old.end() && bound) counts[*bound] += std::max(0.0, sample->value - last->second->value);
  }
  std::vector<Bucket> buckets;
  buckets.reserve(counts.size());
  for (const auto& [bound, count] : counts) buckets.push_back({bound, count});
  return quantile(q, buckets);
}

std::vector<Step::Part> Step::by_label(std::string_view label) const {
  auto old = before_ == nullptr ? decltype(now_->by_label(label)){} : before_->by_label(label);
  std::vector<Part> parts;
  for (auto& [value, set] : now_->by_label(label)) {
    const auto last = old.find(value);
    const bool known = last != old.end() && seconds_ > 0;
    parts.push_back({value, known ? last->second : SampleSet{}, set, known ? seconds_ : 0});
  }
  return parts;
}

}  // namespace egret::top
