#include "top/figures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace egret::top {

namespace {

using enum How;

constexpr Match command(std::string_view name) {
  return {"command", name};
}

// What a lane, a backend and the whole proxy tell alike.
// clang-format off
constexpr FigureRow kLaneRows[] = {
  {"messages", "messages", kRate, Unit::kCount, "egret_proxy_lane_messages_total"},
  {"ops_per_message", "ops/msg", kRatio, Unit::kCount, "egret_proxy_lane_ops_total", "egret_proxy_lane_messages_total"},
  {"refetches_per_message", "refetch/msg", kRatio, Unit::kCount, "egret_proxy_lane_refetches_total", "egret_proxy_lane_messages_total"},
  {"torn", "torn", kRate, Unit::kCount, "egret_proxy_lane_torn_total"},
  {"wants", "wants", kRate, Unit::kCount, "egret_proxy_lane_wants_total"},
  {"rings", "rings", kRate, Unit::kCount, "egret_proxy_lane_rings_total"},
  {"timeouts", "timeouts", kRate, Unit::kCount, "egret_proxy_lane_timeouts_total"},
  {"lanes", "lanes", kCount, Unit::kWhole, "egret_proxy_lane_replies_mode"},
  {"reply_lanes", "in reply mode", kSum, Unit::kWhole, "egret_proxy_lane_replies_mode"},
  {"fetch_size", "fetch size", kLargest, Unit::kBytes, "egret_proxy_lane_fetch_size_bytes"},
};

constexpr FigureRow kProcessRows[] = {
  {"cpu", "CPU", kRate, Unit::kShare, "process_cpu_seconds_total"},
  {"resident", "resident", kSum, Unit::kBytes, "process_resident_memory_bytes"},
  {"descriptors", "files", kSum, Unit::kWhole, "process_open_fds"},
};

constexpr FigureRow kProxyOwn[] = {
  {"requests", "requests", kRate, Unit::kCount, "egret_proxy_requests_total"},
  {"get", "get", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("get")},
  {"set", "set", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("set")},
  {"delete", "delete", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("delete")},
  {"arith", "arith", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("arith")},
  {"touch", "touch", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("touch")},
  {"other", "other", kRate, Unit::kCount, "egret_proxy_requests_total", {}, 0, command("other")},
  {"p50", "p50", kQuantile, Unit::kSeconds, "egret_proxy_request_seconds", {}, 0.5},
  {"p99", "p99", kQuantile, Unit::kSeconds, "egret_proxy_request_seconds", {}, 0.99},
  {"p999", "p99.9", kQuantile, Unit::kSeconds, "egret_proxy_request_seconds", {}, 0.999},
  {"hit_ratio", "hit ratio", kShare, Unit::kShare, "egret_proxy_get_hits_total", "egret_proxy_get_misses_total"},
  {"hit_ratio_since_start", "since start", kShareNow, Unit::kShare, "egret_proxy_get_hits_total", "egret_proxy_get_misses_total"},
  {"hits", "hits", kRate, Unit::kCount, "egret_proxy_get_hits_total"},
  {"misses", "misses", kRate, Unit::kCount, "egret_proxy_get_misses_total"},
  {"received", "in", kRate, Unit::kBytes, "egret_proxy_received_bytes_total"},
  {"sent", "out", kRate, Unit::kBytes, "egret_proxy_sent_bytes_total"},
  {"connections", "connections", kSum, Unit::kWhole, "egret_proxy_connections"},
  {"max_connections", "of", kSum, Unit::kWhole, "egret_proxy_max_connections"},
  {"accepted", "accepted", kRate, Unit::kCount, "egret_proxy_connections_accepted_total"},
  {"rejected", "rejected", kRate, Unit::kCount, "egret_proxy_connections_rejected_total"},
  {"idle_kicks", "idle closed", kRate, Unit::kCount, "egret_proxy_idle_kicks_total"},
  {"errors", "errors", kRate, Unit::kCount, "egret_proxy_request_errors_total"},
  {"ops", "ops", kRate, Unit::kCount, "egret_proxy_lane_ops_total"},
};

constexpr FigureRow kBackendsOwn[] = {
  {"up", "up", kSum, Unit::kWhole, "egret_proxy_backend_up"},
  {"sessions", "sessions", kSum, Unit::kWhole, "egret_proxy_backend_sessions"},
  {"ops", "ops", kRate, Unit::kCount, "egret_proxy_lane_ops_total"},
  {"p50", "p50", kQuantile, Unit::kSeconds, "egret_proxy_rpc_seconds", {}, 0.5},
  {"p99", "p99", kQuantile, Unit::kSeconds, "egret_proxy_rpc_seconds", {}, 0.99},
};

constexpr FigureRow kLanesOwn[] = {
  {"ops", "ops", kRate, Unit::kCount, "egret_proxy_lane_ops_total"},
};

// What a partition and the whole backend tell alike.
constexpr FigureRow kPartitions[] = {
  {"ops", "ops", kRate, Unit::kCount, "egret_backend_ops_total"},
  {"messages", "messages", kRate, Unit::kCount, "egret_backend_messages_total"},
  {"ops_per_message", "ops/msg", kRatio, Unit::kCount, "egret_backend_ops_total", "egret_backend_messages_total"},
  {"hit_ratio", "hit ratio", kShare, Unit::kShare, "egret_backend_get_hits_total", "egret_backend_get_misses_total"},
  {"items", "items", kSum, Unit::kWhole, "egret_backend_curr_items"},
  {"bytes", "memory", kSum, Unit::kBytes, "egret_backend_bytes"},
  {"limit", "of", kSum, Unit::kBytes, "egret_backend_limit_maxbytes"},
  {"evictions", "evictions", kRate, Unit::kCount, "egret_backend_evictions_total"},
  {"lanes", "lanes", kSum, Unit::kWhole, "egret_backend_lanes"},
  {"awake", "awake", kSum, Unit::kWhole, "egret_backend_lanes_awake"},
};

constexpr FigureRow kBackendOwn[] = {
  {"gets", "gets", kRate, Unit::kCount, "egret_backend_cmd_get_total"},
  {"sets", "sets", kRate, Unit::kCount, "egret_backend_cmd_set_total"},
  {"hit_ratio_since_start", "since start", kShareNow, Unit::kShare, "egret_backend_get_hits_total", "egret_backend_get_misses_total"},
  {"hits", "hits", kRate, Unit::kCount, "egret_backend_get_hits_total"},
  {"misses", "misses", kRate, Unit::kCount, "egret_backend_get_misses_total"},
  {"evicted_unfetched", "unread", kRate, Unit::kCount, "egret_backend_evicted_unfetched_total"},
  {"no_memory", "no room", kRate, Unit::kCount, "egret_backend_store_no_memory_total"},
  {"sessions", "sessions", kSum, Unit::kWhole, "egret_backend_sessions"},
  {"max_sessions", "of", kSum, Unit::kWhole, "egret_backend_max_sessions"},
  {"session_memory", "slot memory", kSum, Unit::kBytes, "egret_backend_session_memory_bytes"},
};

// clang-format on

template <size_t... N>
constexpr auto joined(const FigureRow (&... tables)[N]) {
  std::array<FigureRow, (N + ...)> all{};
  auto* to = all.data();
  ((to = std::copy_n(tables, N, to)), ...);
  return all;
}

constexpr auto kProxy = joined(kProcessRows, kProxyOwn, kLaneRows);
constexpr auto kBackends = joined(kBackendsOwn, kLaneRows);
constexpr auto kLanes = joined(kLanesOwn, kLaneRows);
constexpr auto kBackend = joined(kProcessRows, kPartitions, kBackendOwn);

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
  if (!number || !std::isfinite(*number)) return std::nullopt;  // sums of huge numbers may leave what a double holds
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
