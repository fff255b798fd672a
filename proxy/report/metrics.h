// What /metrics says of the proxy: its table, and the page with every figure of now. Counters count from the start of
// the process: `stats reset` does not touch them. Cold path; any thread.
#pragma once

#include <span>
#include <string>

#include "admin/metrics.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

std::span<const admin::MetricRow> metric_table();
std::string metrics_markdown();

std::string metrics_text(const ProxyState& source);

// Workers that have an open session with that backend.
size_t open_sessions(const ProxyState& source, size_t backend);

}  // namespace egret::proxy
