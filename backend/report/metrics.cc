#include "backend/report/metrics.h"

#include <vector>

#include "admin/process_metrics.h"
#include "transport/address.h"

namespace egret::backend {

using admin::MetricPage;
using admin::MetricRow;
using admin::MetricType;
using op::StatId;

namespace {

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;

double figure(uint64_t value) {
  return static_cast<double>(value);
}

struct ControlMetric {
  const char* name;
  MetricType type;
  const char* help;
  uint64_t ControlFigures::*value;
  double per_unit = 1;
};
constexpr double kNsPerSecond = 1e9;
constexpr ControlMetric kControlMetrics[] = {
    {"egret_backend_sessions", kGauge, "Open sessions: one for each worker of each proxy.", &ControlFigures::open},
    {"egret_backend_max_sessions", kGauge, "The limit of sessions (`max_sessions`).", &ControlFigures::max_sessions},
    {"egret_backend_handshaking", kGauge, "Connections that are not a session yet.", &ControlFigures::handshaking},
    {"egret_backend_sessions_closing", kGauge, "Sessions that have ended and whose memory is not freed yet.",
     &ControlFigures::closing},
    {"egret_backend_session_memory_bytes", kGauge, "Memory of the sessions' slots, outside `memory`.",
     &ControlFigures::memory_bytes},
    {"egret_backend_session_memory_limit_bytes", kGauge,
     "The most that they may take (`session_memory_total`); 0: there is no limit.", &ControlFigures::memory_limit},
    {"egret_backend_setup_waiting", kGauge,
     "Connections and sessions that wait for a set-up thread to make their queue pair or memory.",
     &ControlFigures::in_setup},
    {"egret_backend_setup_seconds_total", kCounter, "Time that set-up threads were at work on sessions.",
     &ControlFigures::setup_ns, kNsPerSecond},
    {"egret_backend_session_interval_seconds", kGauge,
     "From one session to the next while as many are made as can be, as far as it is known: at this pace newcomers are "
     "asked to come back.",
     &ControlFigures::session_ns, kNsPerSecond},
    {"egret_backend_sessions_opened_total", kCounter, "Sessions that were granted.", &ControlFigures::opened},
    {"egret_backend_sessions_refused_total", kCounter, "Sessions that were refused; the log says why.",
     &ControlFigures::refused},
    {"egret_backend_newcomers_asked_back_total", kCounter,
     "Connections that were asked to come back later, since many sessions were being made.",
     &ControlFigures::asked_back},
    {"egret_backend_sessions_broken_total", kCounter, "Sessions ended because their peer violated the protocol.",
     &ControlFigures::broken},
    {"egret_backend_handshakes_slowed_total", kCounter,
     "Times that a connection was refused, or not read for a while, because its peer had used its share of time for "
     "handshakes.",
     &ControlFigures::slowed},
    {"egret_backend_session_tls_end_timestamp_seconds", kGauge,
     "When the certificate of `session_tls_certificate` ends, as Unix time; 0: there is none.",
     &ControlFigures::tls_ends_at},
    {"egret_backend_reloads_total", kCounter, "Times that SIGHUP put another configuration in force.",
     &ControlFigures::reloads},
    {"egret_backend_reload_errors_total", kCounter, "Reloads that were refused; the old configuration stayed.",
     &ControlFigures::reload_errors},
};

struct PollerMetric {
  const char* name;
  const char* help;
  uint64_t rpc::PollerCounters::*value;
};
constexpr PollerMetric kPollerMetrics[] = {
    {"egret_backend_messages_total", "Messages executed.", &rpc::PollerCounters::messages},
    {"egret_backend_ops_total", "Ops in them.", &rpc::PollerCounters::ops},
    {"egret_backend_torn_total", "Requests whose checksum did not match when they were read; they were read again.",
     &rpc::PollerCounters::torn},
    {"egret_backend_put_off_total",
     "Messages that waited for those of other lanes, entirely or in part, because their lane had used its share of "
     "work.",
     &rpc::PollerCounters::put_off},
    {"egret_backend_malformed_total", "Requests that ended their session.", &rpc::PollerCounters::malformed},
    {"egret_backend_deliveries_total", "Results that were pushed.", &rpc::PollerCounters::deliveries},
    {"egret_backend_asked_deliveries_total", "Those of them that were asked for with the request.",
     &rpc::PollerCounters::asked},
    {"egret_backend_told_asleep_total",
     "Lanes that fell asleep and whose proxy was told so by a push, since it does not look.",
     &rpc::PollerCounters::told},
    {"egret_backend_parks_total", "Lanes that fell asleep.", &rpc::PollerCounters::naps},
    {"egret_backend_rings_total", "Lanes that were rung awake.", &rpc::PollerCounters::rings},
};

struct ExecutorMetric {
  const char* name;
  const char* help;
  uint64_t ExecutorCounters::*value;
};
constexpr ExecutorMetric kExecutorMetrics[] = {
    {"egret_backend_uploads_over_share_total",
     "Uploads refused because their peer's sessions held its share of the room (`peer_share`).",
     &ExecutorCounters::uploads_over_share},
    {"egret_backend_uploads_gave_way_total",
     "Uploads dropped where there was no room, for one of another session that held less: because they were slow, or "
     "beyond what their session has a right to. Their clients are told SERVER_ERROR out of memory storing object.",
     &ExecutorCounters::uploads_gave_way},
    {"egret_backend_pins_over_share_total",
     "Versions of large values not kept for their reader for the same reason; it reads the present one, or starts "
     "again.",
     &ExecutorCounters::pins_over_share},
    {"egret_backend_values_lent_total",
     "Values of 16 KiB to 1 MiB that clients of the same process sent from where the store has them, without a copy.",
     &ExecutorCounters::lent},
    {"egret_backend_direct_ops_total",
     "Of the ops, those of clients of the same thread that took no slot: their worker executed them there.",
     &ExecutorCounters::direct_ops},
    {"egret_backend_received_in_place_bytes_total",
     "Bytes of values that clients of the same thread received or wrote where the store keeps them, without slots.",
     &ExecutorCounters::received_in_place},
    {"egret_backend_fills_total",
     "Values stored that another backend of the pool still had, after the members of the pool had changed.",
     &ExecutorCounters::fills},
    {"egret_backend_fills_refused_total",
     "Such values that were not stored: the key was there, or had been changed or deleted meanwhile.",
     &ExecutorCounters::fills_refused},
    {"egret_backend_purged_total",
     "Items removed because, after a change of the pool's members, their keys belong to another backend.",
     &ExecutorCounters::purged},
    {"egret_backend_changed_keys_forgotten_total",
     "Times that keys changed in the place of another backend were forgotten for want of room: all that the other "
     "backend holds has to be removed before it is used again.",
     &ExecutorCounters::changes_forgotten},
};

struct LevelMetric {
  const char* name;
  const char* help;
  uint64_t ExecutorLevels::*value;
};
constexpr LevelMetric kLevelMetrics[] = {
    {"egret_backend_warming", "1 while values are taken that another backend of the pool still had.",
     &ExecutorLevels::takes_fills},
    {"egret_backend_tombstone_bytes", "Memory in which keys that change meanwhile are remembered, outside `memory`.",
     &ExecutorLevels::tombstone_bytes},
    {"egret_backend_purging", "1 while items are removed whose keys belong to another backend of the pool.",
     &ExecutorLevels::purges},
    {"egret_backend_lent_bytes",
     "Of values that such clients have not sent completely. Those pinned for it take at most half of `memory`, a "
     "quarter beside uploads; beyond, values are copied.",
     &ExecutorLevels::lent_bytes},
    {"egret_backend_absent_owners",
     "Backends in whose place this one was used; for those used last it is known which keys were changed.",
     &ExecutorLevels::absent_owners},
    {"egret_backend_changed_key_bytes", "Memory in which those keys are remembered, outside `memory`.",
     &ExecutorLevels::changed_bytes},
};

// Rows about the process, which are left out here: the metrics process_* have them.
bool is_of_the_process(StatId id) {
  return id == StatId::kUptime || id == StatId::kPid || id == StatId::kUserUsec || id == StatId::kSystemUsec;
}

// The row's name with the suffix that Prometheus expects.
std::string store_name(const op::StatInfo& info) {
  const std::string name = "egret_backend_" + std::string(info.name);
  if (info.id == StatId::kItemSizeMax) return name + "_bytes";
  return op::is_level(info.id) ? name : name + "_total";
}

std::string sentence(std::string_view help) {
  std::string text(help);
  if (text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + ".";
}

std::vector<MetricRow> make_table() {
  std::vector<MetricRow> table = admin::process_metric_rows("egret_backend");
  for (const ControlMetric& metric : kControlMetrics) table.push_back({metric.name, metric.type, metric.help});
  table.push_back({"egret_backend_transport_sessions",
                   kGauge,
                   "Open sessions by transport: shm, rdma, tcp, or local (within one process).",
                   {"transport"}});
  table.push_back({"egret_backend_partitions", kGauge, "Partitions, and threads that execute ops."});
  table.push_back({"egret_backend_partition_up",
                   kGauge,
                   "1 when the partition's thread answered within a second; else its other series are missing.",
                   {"partition"}});
  table.push_back({"egret_backend_lanes", kGauge, "Lanes of all sessions with the partition.", {"partition"}});
  table.push_back(
      {"egret_backend_lanes_awake", kGauge, "Those it polls; the others would have to ring.", {"partition"}});
  table.push_back({"egret_backend_pushing_is_cheap",
                   kGauge,
                   "1 while the partition tells proxies that pushing results is cheap (`push_below_load`, "
                   "`push_above_sessions`).",
                   {"partition"}});
  for (const PollerMetric& metric : kPollerMetrics)
    table.push_back({metric.name, kCounter, metric.help, {"partition"}});
  for (const ExecutorMetric& metric : kExecutorMetrics)
    table.push_back({metric.name, kCounter, metric.help, {"partition"}});
  for (const LevelMetric& metric : kLevelMetrics) table.push_back({metric.name, kGauge, metric.help, {"partition"}});
  for (const op::StatInfo& info : op::stat_table()) {
    if (is_of_the_process(info.id)) continue;
    table.push_back({store_name(info), op::is_level(info.id) ? kGauge : kCounter, sentence(info.help), {"partition"}});
  }
  return table;
}

void add_partition(MetricPage& page, const std::string& number, const PartitionReport& report) {
  page.add("egret_backend_lanes", figure(report.lanes), {number});
  page.add("egret_backend_lanes_awake", figure(report.lanes_awake), {number});
  page.add("egret_backend_pushing_is_cheap", figure(report.pushing_is_cheap), {number});
  for (const PollerMetric& metric : kPollerMetrics)
    page.add(metric.name, figure(report.poller.*metric.value), {number});
  for (const ExecutorMetric& metric : kExecutorMetrics)
    page.add(metric.name, figure(report.executor.*metric.value), {number});
  for (const LevelMetric& metric : kLevelMetrics) page.add(metric.name, figure(report.levels.*metric.value), {number});
  for (const op::StatRow& row : report.store) {
    const op::StatInfo& info = op::stat_table()[row.id - 1];
    page.add(store_name(info), figure(row.value), {number});
  }
}

}  // namespace

std::span<const MetricRow> metric_table() {
  static const std::vector<MetricRow> table = make_table();
  return table;
}

std::string metrics_markdown() {
  return admin::metrics_markdown(metric_table());
}

std::string metrics_text(const ControlFigures& control, std::span<const PartitionReport* const> reports) {
  MetricPage page(metric_table());
  admin::add_process_metrics(page, "egret_backend");
  for (const ControlMetric& metric : kControlMetrics)
    page.add(metric.name, figure(control.*metric.value) / metric.per_unit);
  for (const std::string_view transport : transport::transport_names()) {
    const auto at = control.open_by_transport.find(transport);
    const uint64_t open = at == control.open_by_transport.end() ? 0 : at->second;
    page.add("egret_backend_transport_sessions", figure(open), {std::string(transport)});
  }
  page.add("egret_backend_partitions", figure(reports.size()));
  for (size_t partition = 0; partition < reports.size(); ++partition) {
    const std::string number = std::to_string(partition);
    page.add("egret_backend_partition_up", reports[partition] != nullptr ? 1 : 0, {number});
    if (reports[partition] != nullptr) add_partition(page, number, *reports[partition]);
  }
  return page.text();
}

}  // namespace egret::backend
