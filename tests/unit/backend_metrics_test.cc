// /metrics of the backend: the table and the page agree, even if a partition does not report; no counter goes down.
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/report/metrics.h"
#include "base/clock.h"
#include "metrics_text.h"
#include "store/store.h"

using namespace egret::backend;
namespace admin = egret::admin;
namespace op = egret::op;
using egret::told_of;

namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

// As a store reports itself.
PartitionReport report_of(uint64_t value) {
  PartitionReport report;
  for (const op::StatInfo& info : op::stat_table()) {
    const bool is_process = info.id >= op::StatId::kUptime && info.id <= op::StatId::kSystemUsec;
    if (!is_process) report.store.push_back({static_cast<uint32_t>(info.id), 0, value});
  }
  report.poller.messages = value;
  return report;
}

}  // namespace

TEST_CASE("every row of the table is on the page, and nothing else is") {
  std::set<std::string> rows;
  for (const admin::MetricRow& row : metric_table()) {
    CAPTURE(row.name);
    CHECK(rows.insert(row.name).second);
    CHECK(row.help.ends_with('.'));
    CHECK((row.type == admin::MetricType::kCounter) == row.name.ends_with("_total"));
  }
  const PartitionReport report = report_of(1);
  const std::vector<const PartitionReport*> reports = {&report};
  CHECK(told_of(metrics_text({}, reports)) == rows);
}

TEST_CASE("figures are each partition's; those of one that does not answer are missing, and that is said") {
  const PartitionReport report = report_of(42);
  const std::vector<const PartitionReport*> reports = {nullptr, &report};
  const std::string text = metrics_text({.open = 3,
                                         .open_by_transport = {{"shm", 1}, {"tcp", 2}},
                                         .in_setup = 4,
                                         .session_ns = 1'500'000,
                                         .refused = 5,
                                         .asked_back = 7,
                                         .setup_ns = 2'500'000'000},
                                        reports);
  CHECK(has(text, "egret_backend_setup_waiting 4"));
  CHECK(has(text, "egret_backend_session_interval_seconds 0.0015"));
  CHECK(has(text, "egret_backend_setup_seconds_total 2.5"));
  CHECK(has(text, "egret_backend_sessions 3"));
  CHECK(has(text, "egret_backend_transport_sessions{transport=\"shm\"} 1"));
  CHECK(has(text, "egret_backend_transport_sessions{transport=\"rdma\"} 0"));
  CHECK(has(text, "egret_backend_transport_sessions{transport=\"tcp\"} 2"));
  CHECK(has(text, "egret_backend_sessions_refused_total 5"));
  CHECK(has(text, "egret_backend_newcomers_asked_back_total 7"));
  CHECK(has(text, "egret_backend_partition_up{partition=\"0\"} 0"));
  CHECK(has(text, "egret_backend_partition_up{partition=\"1\"} 1"));
  CHECK(has(text, "egret_backend_get_hits_total{partition=\"1\"} 42"));
  CHECK(has(text, "egret_backend_messages_total{partition=\"1\"} 42"));
  CHECK(has(text, "egret_backend_curr_items{partition=\"1\"} 42"));
  CHECK_FALSE(has(text, "egret_backend_curr_items{partition=\"0\"} 42"));
}
