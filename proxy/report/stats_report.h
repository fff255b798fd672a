// The text of `stats` and its kin: counters of the store (from the backend, over all proxies), counters of connections
// (this proxy's, over its workers), and settings, under memcached's names. One table row each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/live.h"
#include "base/reload.h"
#include "proxy/client/connection_gate.h"
#include "proxy/client/connection_table.h"
#include "proxy/client/handover.h"
#include "proxy/client/tls.h"
#include "proxy/commands/admin_state.h"
#include "proxy/commands/fan_out.h"
#include "proxy/config.h"
#include "proxy/report/proxy_stats.h"

namespace egret::proxy {

// The memcached whose behaviour and answers this is; clients look at it to tell what a server can do.
inline constexpr std::string_view kMemcachedVersion = "1.6.45";

// What the report needs to know of the proxy. Shared by all workers; what is not Live or a counter is fixed while they
// run.
struct StatsSource {
  base::Live<Config> config;  // the one in force
  const base::Clock* clock = nullptr;
  uint64_t start_ns = 0;
  std::vector<std::unique_ptr<WorkerStats>> workers;
  base::Live<std::vector<ListenerRecord>> listeners;
  mutable AcceptCounters accepts;
  mutable ConnectionGate gate;
  TlsServer* tls = nullptr;
  base::ReloadCounters reloads;
  mutable AdminState admin;
  mutable Handover handover{places_in_store()};
};

// Each ends with END.
std::string general_report(const StatsSource& source, const FanOut& store);
std::string settings_report(const StatsSource& source, uint64_t item_size_max, uint64_t memory, bool evicts);
// `stats egret`: every lane of every backend, added up over workers; rows as lane_metrics() names them.
std::string lanes_report(const StatsSource& source);
// `stats egret check`: each partition, "ok" or what is wrong with its store.
std::string check_report(const std::vector<std::string>& complaints);
// Those rows and what they mean, as GitHub's Markdown, for the README.
std::string lane_metrics_markdown();
// Starts this proxy's counters anew.
void reset_stats(const StatsSource& source);

}  // namespace egret::proxy
