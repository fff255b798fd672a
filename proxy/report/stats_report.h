// The text of `stats` and its variants: counters of the store (from the backends, for all proxies), counters of
// connections (of this proxy, for all its workers), and settings, with memcached's names. One table row each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pool/fan_out.h"
#include "proxy/commands/admin_state.h"
#include "proxy/config.h"
#include "proxy/proxy_state.h"
#include "proxy/report/paged_report.h"
#include "proxy/report/proxy_stats.h"

namespace egret::proxy {

// The version of memcached whose behaviour this is; clients read it to find out what a server supports.
inline constexpr std::string_view kMemcachedVersion = "1.6.45";

// Each ends with END.
// `asked_ns`: when the backends were asked.
std::string general_report(ProxyState& source, const pool::FanOut& store, uint64_t asked_ns);
std::string settings_report(const ProxyState& source, uint64_t item_size_max, uint64_t memory, bool evicts);
// `stats egret`: every lane of every backend, added up over workers; lane_metrics() has the rows.
std::unique_ptr<PagedReport> lanes_report(const ProxyState& source);
// `stats egret check`: each partition, "ok" or what is wrong with its store.
std::string check_report(const std::vector<std::string>& complaints);
// The table of those rows as GitHub's Markdown, for docs/reference.
std::string lane_metrics_markdown();
// Resets this proxy's counters.
void reset_stats(ProxyState& source);

}  // namespace egret::proxy
