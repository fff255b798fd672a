// The proxy's metrics: the table, and the text of /metrics with the present values. Counters count from the start of
// the process: `stats reset` does not change them. Cold path; any thread.
#pragma once

#include <span>
#include <string>

#include "admin/metrics.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

std::span<const admin::MetricRow> metric_table();
std::string metrics_markdown();

std::string metrics_text(const ProxyState& source);

}  // namespace egret::proxy
