// Parses Prometheus' text format 0.0.4 from an untrusted peer: lines that are not samples are ignored, and the limits
// below bound memory and time. A value type; any thread.
//
//   text ─ parse_exposition ─▶ Scrape ─▶ SampleSet, by metric and series ─▶ Step (step.h)
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace egret::top {

inline constexpr size_t kMaxScrapeBytes = 32u << 20;
inline constexpr size_t kMaxSamples = 400'000;
inline constexpr size_t kMaxLabels = 16;  // of one sample; a line with more is ignored

struct Sample {
  std::string name;
  std::string written;                                      // name and labels as received: identifies the series
  std::vector<std::pair<std::string, std::string>> labels;  // names and unescaped values
  double value = 0;                                         // finite

  const std::string* label(std::string_view label_name) const;  // null: it has no such label
};

// The sample in a line; none if the line is not a sample (or a comment).
std::optional<Sample> parse_sample(std::string_view line);

// Selects samples by the value of a label; an empty label selects all.
struct Match {
  std::string_view label{};
  std::string_view value{};
  bool takes(const Sample& sample) const;
};

// Compares numbers within names as numbers: "cache-2" before "cache-10".
struct NaturalOrder {
  bool operator()(std::string_view left, std::string_view right) const;
};

// Some samples of a Scrape, which must outlive it.
class SampleSet {
 public:
  using Series = std::map<std::string_view, const Sample*>;  // by Sample::written

  void add(const Sample& sample);
  const Series& series(std::string_view metric) const;  // empty if there is none
  const std::map<std::string_view, Series>& metrics() const { return metrics_; }
  bool has(std::string_view metric) const { return metrics_.contains(metric); }

  std::optional<double> sum(std::string_view metric, Match match = {}) const;      // none: no such series
  std::optional<double> largest(std::string_view metric, Match match = {}) const;  // none: no such series
  double count(std::string_view metric, Match match = {}) const;                   // number of series

  // The samples with `label`, grouped by its value.
  std::map<std::string_view, SampleSet, NaturalOrder> by_label(std::string_view label) const;

 private:
  std::map<std::string_view, Series> metrics_;
};

class Scrape {
 public:
  const SampleSet& samples() const { return set_; }

 private:
  friend std::shared_ptr<const Scrape> parse_exposition(std::string_view text);
  std::deque<Sample> owned_;  // a deque does not move its elements
  SampleSet set_;
};

// Ignores lines that are not samples, and everything beyond the limits. Of two lines for one series the last one
// counts.
std::shared_ptr<const Scrape> parse_exposition(std::string_view text);

}  // namespace egret::top
