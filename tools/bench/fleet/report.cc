#include "bench_fleet/report.h"

#include <string>

namespace egret::bench_fleet {
namespace {

using bench_store::Cell;
using bench_store::Table;

constexpr double kKiB = 1024;

Table counts(const FleetOptions& options, const Outcome& outcome) {
  Table table;
  table.name = "counts";
  table.notes.push_back("Counted, beside what the model of docs/benchmarks/scale.md says.");
  for (const std::string& left_out : outcome.left_out) table.notes.push_back(left_out);
  table.columns = {"sessions x lanes",           "sessions",     "open",
                   "descriptors of the backend", "by the model", "descriptors of the proxy",
                   "by the model too",           "region bytes", "region bytes by the model"};
  for (const auto* costs : {&outcome.of_backend, &outcome.of_proxy}) {
    for (const Cost& cost : *costs) {
      const uint64_t sessions = cost.sessions;
      table.rows.push_back(
          {std::to_string(sessions) + " x " + std::to_string(cost.lanes), Cell(sessions), Cell(cost.open),
           Cell(cost.backend_descriptors), Cell(sessions * CostModel::kDescriptorsOfBackend),
           Cell(cost.own_descriptors), Cell(sessions * CostModel::kDescriptorsOfProxy), Cell(cost.region_bytes),
           Cell(CostModel::region_bytes(sessions, cost.lanes, options.window, kRequestSlot, kResponseSlot))});
    }
  }
  return table;
}

Table costs_of(const char* name, const char* note, const std::vector<Cost>& costs) {
  Table table;
  table.name = name;
  table.notes.push_back(note);
  table.columns = {"sessions",
                   "open ms",
                   "open us each",
                   "backend CPU us each",
                   "backend KiB each",
                   "proxy KiB each",
                   "idle backend, CPUs",
                   "pass ns",
                   "pass ns a session",
                   "keep-alives ns",
                   "latency us",
                   "p99 us",
                   "backend CPU us a get"};
  for (const Cost& cost : costs) {
    const auto sessions = static_cast<double>(cost.sessions);
    table.rows.push_back({std::to_string(cost.sessions), Cell(cost.open_ms, 1), Cell(cost.open_ms * 1e3 / sessions, 0),
                          Cell(cost.open_backend_us, 0), Cell(cost.backend_bytes / kKiB, 1),
                          Cell(cost.own_bytes / kKiB, 1), Cell(cost.idle_backend, 3), Cell(cost.pass_ns, 0),
                          Cell(cost.pass_ns / sessions, 1), Cell(cost.keep_alive_ns, 0), Cell(cost.latency_us, 1),
                          Cell(cost.latency_p99_us, 1), Cell(cost.active_backend_us, 1)});
  }
  return table;
}

}  // namespace

std::vector<Table> tables_of(const FleetOptions& options, const Outcome& outcome) {
  return {counts(options, outcome),
          costs_of("backend", "A backend of one partition, and so many sessions; one is active.", outcome.of_backend),
          costs_of("proxy", "A proxy's worker, and so many backends; one is active.", outcome.of_proxy)};
}

}  // namespace egret::bench_fleet
