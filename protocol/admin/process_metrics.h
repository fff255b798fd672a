// The standard metrics of Prometheus' client libraries for every process: CPU, memory, descriptors, start, version.
// Cold path: reads /proc. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "admin/metrics.h"

namespace egret::admin {

// Rows of a daemon's table: "egret_proxy" has egret_proxy_build_info.
std::vector<MetricRow> process_metric_rows(const std::string& daemon);

void add_process_metrics(MetricPage& page, const std::string& daemon);

}  // namespace egret::admin
