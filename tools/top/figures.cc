#include "top/figures.h"

#include <algorithm>
#include <cmath>

namespace egret::top {

namespace {

using enum How;

#include "top_figures_table.inc"  // kProxy, kBackends, kLanes, kBackend, kPartitions: made of protocol/page/figures.json

std::optional<double> share_of(std::optional<double> part, std::optional<double> rest) {
  if (!part || !rest || *part + *rest == 0) return std::nullopt;
  return *part / (*part + *rest);
}

std::optional<Value> value_of(const FigureRow& row, const Step& step) {
  std::optional<double> number;
  switch (row.how) {
    case kSum:
      number = step.now().sum(row.metric, row.match);
      break;
    case kLargest:
      number = step.now().largest(row.metric, row.match);
      break;
    case kCount:
      number = step.now().count(row.metric, row.match);
      break;
    case kRate:
      number = step.rate(row.metric, row.match);
      break;
    case kRatio:
      number = step.ratio(row.metric, row.other);
      break;
    case kShare:
      number = step.share(row.metric, row.other);
      break;
    case kShareNow:
      number = share_of(step.now().sum(row.metric, row.match), step.now().sum(row.other, row.match));
      break;
    case kQuantile:
      const auto found = step.quantile_of(row.q, row.metric);
      if (!found || !std::isfinite(found->seconds)) return std::nullopt;
      return Value{found->seconds, found->beyond};
  }
  if (!number || !std::isfinite(*number)) return std::nullopt;  // sums of huge numbers may overflow
  return Value{*number, false};
}

Values values_of(std::span<const FigureRow> table, const Step& step) {
  Values values;
  for (const FigureRow& row : table) values.push_back(value_of(row, step));
  return values;
}

Kind kind_of(const SampleSet& samples) {
  if (samples.has("egret_proxy_build_info")) return Kind::kProxy;
  if (samples.has("egret_backend_build_info")) return Kind::kBackend;
  for (const auto& [metric, series] : samples.metrics()) {
    if (metric.starts_with("egret_proxy_")) return Kind::kProxy;
    if (metric.starts_with("egret_backend_")) return Kind::kBackend;
  }
  return Kind::kUnknown;
}

std::string version_of(const SampleSet& samples) {
  for (const char* metric : {"egret_proxy_build_info", "egret_backend_build_info"}) {
    for (const auto& [written, sample] : samples.series(metric)) {
      if (const std::string* version = sample->label("version")) return *version;
    }
  }
  return {};
}

std::string address_of(const SampleSet& backend) {
  for (const auto& [written, sample] : backend.series("egret_proxy_backend_info")) {
    if (const std::string* address = sample->label("address")) return *address;
  }
  return {};
}

void add_backends(const Step& step, Figures& figures) {
  for (const Step::Part& backend : step.by_label("backend")) {
    const Step own = backend.step();
    figures.parts.push_back({std::string(backend.value), {}, values_of(kBackends, own), address_of(own.now())});
    for (const Step::Part& lane : own.by_label("lane")) {
      figures.lanes.push_back({std::string(backend.value), std::string(lane.value), values_of(kLanes, lane.step())});
    }
  }
}

}  // namespace

std::span<const FigureRow> table_of(Kind kind) {
  if (kind == Kind::kProxy) return kProxy;
  if (kind == Kind::kBackend) return kBackend;
  return {};
}

std::span<const FigureRow> part_table_of(Kind kind) {
  if (kind == Kind::kProxy) return kBackends;
  if (kind == Kind::kBackend) return kPartitions;
  return {};
}

std::span<const FigureRow> lane_table() {
  return kLanes;
}

Figures figures_of(const Step& step) {
  const SampleSet& now = step.now();
  Figures figures{.kind = kind_of(now), .has_restarted = step.has_restarted(), .has_rates = step.has_rates()};
  if (figures.kind == Kind::kUnknown) return figures;
  figures.version = version_of(now);
  figures.started = now.sum("process_start_time_seconds");
  figures.values = values_of(table_of(figures.kind), step);
  if (figures.kind == Kind::kProxy) add_backends(step, figures);
  if (figures.kind == Kind::kBackend) {
    for (const Step::Part& partition : step.by_label("partition")) {
      figures.parts.push_back({std::string(partition.value), {}, values_of(kPartitions, partition.step())});
    }
  }
  return figures;
}

std::optional<Value> figure(std::span<const FigureRow> table, const Values& values, std::string_view name) {
  for (size_t row = 0; row < table.size() && row < values.size(); ++row) {
    if (table[row].name == name) return values[row];
  }
  return std::nullopt;
}

}  // namespace egret::top
