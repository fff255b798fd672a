#include "admin/metrics.h"

#include <limits>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "base/check.h"
#include "base/text.h"

namespace egret::admin {

namespace {

prometheus::MetricType type_of(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
    case MetricType::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kGauge:
      break;
  }
  return "gauge";
}

// Prometheus accepts UTF-8 only: one bad byte would make it refuse the whole page.
std::string label_value(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') {
      const std::string in_quotes = base::quoted(text, std::numeric_limits<size_t>::max());
      return in_quotes.substr(1, in_quotes.size() - 2);
    }
  }
  return std::string(text);
}

}  // namespace

std::string metrics_markdown(std::span<const MetricRow> table) {
  std::string text = "| metric | type | labels | what it says |\n| --- | --- | --- | --- |\n";
  for (const MetricRow& row : table) {
    std::string labels;
    for (const std::string& label : row.labels) labels.append(labels.empty() ? "" : ", ").append("`" + label + "`");
    text += "| `" + row.name + "` | " + std::string(type_name(row.type)) + " | " + labels + " | " + row.help + " |\n";
  }
  return text;
}

HistogramFigures add_up(std::span<const base::Histogram* const> histograms) {
  using base::Histogram;
  constexpr double kNanoseconds = 1e9;  // per second; dividing keeps decimal bounds short
  HistogramFigures figures;
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    for (const Histogram* histogram : histograms) figures.count += histogram->count(bucket);
    if (bucket + 1 == Histogram::kBuckets) break;  // the last has no bound
    figures.buckets.push_back({static_cast<double>(Histogram::upper_bound(bucket)) / kNanoseconds, figures.count});
  }
  for (const Histogram* histogram : histograms) figures.sum += static_cast<double>(histogram->sum_ns()) / kNanoseconds;
  return figures;
}

struct MetricPage::Families {
  std::span<const MetricRow> table;
  std::vector<prometheus::MetricFamily> all;  // in the order of the table
  std::unordered_map<std::string_view, size_t> index;

  // Adds a series to that row.
  prometheus::ClientMetric& series(std::string_view name, bool is_histogram, Labels labels) {
    const auto at = index.find(name);
    if (at == index.end()) base::check_failed(__FILE__, __LINE__, ("no such metric: " + std::string(name)).c_str());
    const MetricRow& row = table[at->second];
    EGRET_CHECK((row.type == MetricType::kHistogram) == is_histogram && row.labels.size() == labels.size());
    prometheus::ClientMetric& added = all[at->second].metric.emplace_back();
    size_t i = 0;
    for (const std::string_view label : labels) added.label.push_back({row.labels[i++], label_value(label)});
    return added;
  }
};

MetricPage::MetricPage(std::span<const MetricRow> table) : families_(std::make_unique<Families>()) {
  families_->table = table;
  for (const MetricRow& row : table) {
    families_->index.emplace(row.name, families_->all.size());
    families_->all.push_back({.name = row.name, .help = row.help, .type = type_of(row.type), .metric = {}});
  }
}
MetricPage::~MetricPage() = default;

void MetricPage::add(std::string_view name, double value, Labels labels) {
  prometheus::ClientMetric& series = families_->series(name, false, labels);
  series.counter.value = value;
  series.gauge.value = value;
}

void MetricPage::add(std::string_view name, const HistogramFigures& figures, Labels labels) {
  prometheus::ClientMetric& series = families_->series(name, true, labels);
  series.histogram.sample_count = figures.count;
  series.histogram.sample_sum = figures.sum;
  for (const auto& [up_to, count] : figures.buckets) series.histogram.bucket.push_back({count, up_to});
  series.histogram.bucket.push_back({figures.count, std::numeric_limits<double>::infinity()});
}

std::string MetricPage::text() const {
  std::vector<prometheus::MetricFamily> told;
  for (const prometheus::MetricFamily& family : families_->all) {
    if (!family.metric.empty()) told.push_back(family);
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, told);
  return std::move(out).str();
}

}  // namespace egret::admin
