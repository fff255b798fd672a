// What /metrics says of the backend: its table, and the page made of what the control thread knows and of what the
// partitions reported. Counters count from the start of the process: `stats reset` does not touch them.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "admin/metrics.h"
#include "backend/report.h"

namespace egret::backend {

// What the control thread knows: of sessions, of those who wish for one, and of itself. Counters count from the start.
struct ControlFigures {
  uint64_t open = 0;
  uint64_t handshaking = 0;  // connections that are no session yet
  uint64_t closing = 0;      // whose memory partitions have not let go of yet
  uint64_t max_sessions = 0;
  uint64_t memory_bytes = 0;  // of the slots of sessions that are open or closing
  uint64_t opened = 0;
  uint64_t refused = 0;
  uint64_t broken = 0;  // ended because their peer wrote what it must not
  uint64_t slowed = 0;  // connections turned away or not read from for a while, because of their peer's rate
  uint64_t reloads = 0;
  uint64_t reload_errors = 0;
};

std::span<const admin::MetricRow> metric_table();
std::string metrics_markdown();

// `reports[n]` is partition n's; null: it has not answered, and none of its series is there.
std::string metrics_text(const ControlFigures& control, std::span<const PartitionReport* const> reports);

}  // namespace egret::backend
