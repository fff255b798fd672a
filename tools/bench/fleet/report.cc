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
  table.notes.push_back("Pinned: by the kernel, for devices (VmPin). Slots of " + std::to_string(options.slot_size) +
                        " bytes, " + std::to_string(options.window) +
                        " each way in a lane, as of a proxy that is idle.");
  for (const std::string& left_out : outcome.left_out) table.notes.push_back(left_out);
  table.columns = {"sessions x lanes",
                   "sessions",
                   "open",
                   "descriptors of the backend",
                   "by the model",
                   "descriptors of the proxy",
                   "by the model too",
                   "region bytes",
                   "region bytes by the model",
                   "pinned by the backend, KiB",
                   "pinned by the proxy, KiB"};
  const CostModel model = CostModel::of(options.at);
  for (const auto* costs : {&outcome.of_backend, &outcome.of_proxy}) {
    for (const Cost& cost : *costs) {
      const uint64_t sessions = cost.sessions;
      table.rows.push_back({std::to_string(sessions) + " x " + std::to_string(cost.lanes), Cell(sessions),
                            Cell(cost.open), Cell(cost.backend_descriptors),
                            Cell(sessions * model.backend_descriptors + cost.lane_rings), Cell(cost.own_descriptors),
                            Cell(sessions * model.own_descriptors + cost.lane_rings), Cell(cost.region_bytes),
                            Cell(CostModel::region_bytes(sessions, cost.lanes, options.window, options.slot_size)),
                            Cell(cost.backend_pinned / 1024), Cell(cost.own_pinned / 1024)});
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
                   "idle proxy, CPUs",
                   "pass ns",
                   "latency us",
                   "p99 us",
                   "backend CPU us a get"};
  for (const Cost& cost : costs) {
    const auto sessions = static_cast<double>(cost.sessions);
    table.rows.push_back({std::to_string(cost.sessions), Cell(cost.open_ms, 1), Cell(cost.open_ms * 1e3 / sessions, 0),
                          Cell(cost.open_backend_us, 0), Cell(cost.backend_bytes / kKiB, 1),
                          Cell(cost.own_bytes / kKiB, 1), Cell(cost.idle_backend, 4), Cell(cost.idle_own, 4),
                          Cell(cost.pass_ns, 0), Cell(cost.latency_us, 1), Cell(cost.latency_p99_us, 1),
                          Cell(cost.active_backend_us, 1)});
  }
  return table;
}

Table restarts(const std::vector<Restart>& all) {
  Table table;
  table.name = "restart";
  table.notes.push_back(
      "The backend is killed and started again. Times from the first session that is back; one further "
      "worker gets something every millisecond meanwhile.");
  table.columns = {"sessions",       "all back ms",        "half of them ms", "attempts at most", "backend CPU us each",
                   "gets meanwhile", "median of these us", "p99 us"};
  for (const Restart& one : all) {
    table.rows.push_back({std::to_string(one.sessions), Cell(one.back_ms, 0), Cell(one.half_ms, 0),
                          Cell(uint64_t{one.attempts}), Cell(one.backend_us, 0), Cell(one.served),
                          Cell(one.served_p50_us, 1), Cell(one.served_p99_us, 1)});
  }
  return table;
}

}  // namespace

std::vector<Table> tables_of(const FleetOptions& options, const Outcome& outcome) {
  return {counts(options, outcome),
          costs_of("backend", "A backend, and so many sessions; one is active.", outcome.of_backend),
          costs_of("proxy", "A proxy's worker, and so many backends; one is active.", outcome.of_proxy),
          restarts(outcome.restarts)};
}

}  // namespace egret::bench_fleet
