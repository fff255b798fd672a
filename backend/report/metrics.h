// The backend's metrics: the table, and the text of /metrics, from the control thread's figures and the partitions'
// reports. Counters count from the start of the process: `stats reset` does not change them.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "admin/metrics.h"
#include "backend/report/report.h"

namespace egret::backend {

// The control thread's figures: sessions, connections in their handshake, and its own counters.
struct ControlFigures {
  uint64_t open = 0;
  // By the name of the transport (transport::transport_names()); a name that is missing has no open session.
  std::map<std::string, uint64_t, std::less<>> open_by_transport{};
  uint64_t handshaking = 0;  // connections that are not a session yet
  uint64_t closing = 0;      // sessions that some partition has not detached yet
  uint64_t max_sessions = 0;
  uint64_t memory_bytes = 0;  // slots of the sessions that are open or closing
  uint64_t memory_limit = 0;  // of that; 0: none
  uint64_t in_setup = 0;      // connections and sessions that wait for a set-up thread
  uint64_t session_ns = 0;    // from one session to the next, while as many are made as can be
  uint64_t opened = 0;
  uint64_t refused = 0;
  uint64_t asked_back = 0;   // connections asked to come back later
  uint64_t broken = 0;       // sessions ended because their peer violated the protocol
  uint64_t setup_ns = 0;     // of set-up threads' time
  uint64_t slowed = 0;       // connections turned away or not read from for a while, because of their peer's rate
  uint64_t tls_ends_at = 0;  // Unix time at which session_tls_certificate ends; 0: there is none
  uint64_t reloads = 0;
  uint64_t reload_errors = 0;
};

std::span<const admin::MetricRow> metric_table();
std::string metrics_markdown();

// `reports[n]` is partition n's; null: it has not answered, and its series are left out.
std::string metrics_text(const ControlFigures& control, std::span<const PartitionReport* const> reports);

}  // namespace egret::backend
