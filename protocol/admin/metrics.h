// The metric tables: one row for each metric of a daemon. The HELP and TYPE lines of /metrics, `--help-metrics` and
// docs/reference come from it. And the page of /metrics, which is filled in row by row.
//
//   MetricRow table ─┬─▶ metrics_markdown()                                    docs/reference
//                    └─▶ MetricPage: add(name, value, label values) ... text()  /metrics
//
// add() aborts if the name has no row. Cold path; one thread at a time. prometheus-cpp writes the text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"

namespace egret::admin {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

// Names follow Prometheus' conventions: the unit is the last part (_seconds, _bytes), and counters end in _total.
struct MetricRow {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string help;                      // a sentence or two, no line breaks
  std::vector<std::string> labels = {};  // names
};

// The table as GitHub's Markdown.
std::string metrics_markdown(std::span<const MetricRow> table);

// A histogram in Prometheus' form: cumulative counts by upper bound, count and sum.
struct HistogramFigures {
  struct Bucket {
    double up_to = 0;
    uint64_t count = 0;
  };
  std::vector<Bucket> buckets;  // bounds rise
  uint64_t count = 0;
  double sum = 0;
};

// The sum of several writers' histograms, in seconds.
HistogramFigures add_up(std::span<const base::Histogram* const> histograms);

class MetricPage {
 public:
  // The table outlives the page.
  explicit MetricPage(std::span<const MetricRow> table);
  ~MetricPage();

  // `labels` are the values for the row's label names, in their order. Bytes that are not printable ASCII are escaped.
  using Labels = std::initializer_list<std::string_view>;
  void add(std::string_view name, double value, Labels labels = {});
  void add(std::string_view name, const HistogramFigures& figures, Labels labels = {});

  // Prometheus' text format. Rows without a series are left out.
  std::string text() const;

  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace egret::admin
