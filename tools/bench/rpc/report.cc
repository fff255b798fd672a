#include "bench_rpc/report.h"

#include <algorithm>
#include <string>

namespace egret::bench_rpc {
namespace {

using bench_store::Cell;
using bench_store::Table;

constexpr double kGoalRate = 12.3;      // M ops/s of a partition's core: batched HERD's
constexpr double kGoalOfStore = 60;     // % of the store's own rate in one process
constexpr double kGoalOfSessions = 90;  // % of one session's rate with kGoalSessions of them
constexpr uint32_t kGoalSessions = 1024;
constexpr double kMiB = 1 << 20;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median(const Shape& shape, double Round::*field) {
  std::vector<double> values;
  for (const Round& each : shape.rounds) values.push_back(each.*field);
  return median(values);
}

// M ops/s of a core, where an op takes so many ns of it.
Cell rate(double ns) {
  return Cell(1e3 / ns, 2);
}

// Of `base` in the same round: how much of its rate `shape` has, in %.
double share_of(const std::vector<double>& base_ns, const Shape& shape) {
  std::vector<double> shares;
  for (size_t i = 0; i < std::min(base_ns.size(), shape.rounds.size()); ++i)
    shares.push_back(base_ns[i] / shape.rounds[i].cpu_ns * 100);
  return median(shares);
}

void add_verdict(Table& table, const char* what, double found, double goal, const char* unit) {
  table.notes.push_back(std::string("Goal: ") + what + " >= " + Cell(goal, 1).text() + unit + "; found " +
                        Cell(found, 1).text() + unit + (found >= goal ? "." : ": not met."));
}

std::string workload(const MeasureOptions& options, const Outcome& outcome) {
  const std::string mix =
      options.ops_per_set == 0 ? "gets only" : "one op in " + std::to_string(options.ops_per_set) + " a set";
  return std::to_string(options.keys) + " items of 16 + " + std::to_string(options.value_size) + " B, uniform, " + mix +
         "; partitions: " + std::to_string(options.partitions) + ", window: " + std::to_string(options.window) +
         ". Cut, not counted: " + std::to_string(outcome.cut) + " gets.";
}

Table rates(const MeasureOptions& options, const Outcome& outcome) {
  Table table;
  table.name = "rates";
  table.columns = {"what",
                   "CPU ns/op",
                   "M ops/s of a core, by CPU time",
                   "by wall time",
                   "least",
                   "greatest",
                   "ops/message",
                   "client CPU ns/op",
                   "client waits %",
                   "% of in process",
                   "other CPUs busy"};
  table.notes.push_back(workload(options, outcome));
  const Cell none = Cell::none();
  if (!outcome.store_ns.empty()) {
    const auto [least, greatest] = std::ranges::minmax(outcome.store_ns);
    const double ns = median(outcome.store_ns);
    table.rows.push_back({"the store, in process", Cell(ns, 1), rate(ns), none, rate(greatest), rate(least), none, none,
                          none, Cell(100, 0), none});
  }
  if (outcome.shapes.empty() || outcome.shapes.front().rounds.empty()) return table;
  const Shape& one = outcome.shapes.front();
  const auto [least, greatest] = std::ranges::minmax(one.rounds, {}, &Round::cpu_ns);
  const double ns = median(one, &Round::cpu_ns);
  const double share = share_of(outcome.store_ns, one);
  table.rows.push_back({"the backend, over slots", Cell(ns, 1), rate(ns), rate(median(one, &Round::wall_ns)),
                        rate(greatest.cpu_ns), rate(least.cpu_ns), Cell(median(one, &Round::ops_per_message), 1),
                        Cell(median(one, &Round::client_ns), 1), Cell(median(one, &Round::waits) * 100, 0),
                        outcome.store_ns.empty() ? none : Cell(share, 0), Cell(median(one, &Round::others_busy), 2)});
  add_verdict(table, "M ops/s of a partition's core", 1e3 / ns, kGoalRate, "");
  if (!outcome.store_ns.empty()) add_verdict(table, "of the store's own rate in process", share, kGoalOfStore, " %");
  return table;
}

Table scaling(const Outcome& outcome) {
  Table table;
  table.name = "sessions";
  table.columns = {"sessions, active",
                   "sessions",
                   "M ops/s of a core, by CPU time",
                   "by wall time",
                   "least",
                   "greatest",
                   "CPU ns/op",
                   "% of the first row",
                   "region KiB",
                   "regions MiB",
                   "backend grew MiB",
                   "other CPUs busy",
                   "idle pass ns",
                   "touching all ns"};
  std::vector<double> first_ns;
  for (const Shape& shape : outcome.shapes) {
    if (shape.rounds.empty()) continue;
    if (first_ns.empty()) {
      for (const Round& each : shape.rounds) first_ns.push_back(each.cpu_ns);
    }
    const double share = share_of(first_ns, shape);
    const double ns = median(shape, &Round::cpu_ns);
    const auto [least, greatest] = std::ranges::minmax(shape.rounds, {}, &Round::cpu_ns);
    table.rows.push_back(
        {std::to_string(shape.sessions) + (shape.in_turn ? ", in turn" : ", one"), Cell(uint64_t{shape.sessions}),
         rate(ns), rate(median(shape, &Round::wall_ns)), rate(greatest.cpu_ns), rate(least.cpu_ns), Cell(ns, 1),
         Cell(share, 0), Cell(static_cast<double>(shape.granted) / 1024, 1),
         Cell(static_cast<double>(shape.granted * shape.sessions) / kMiB, 1),
         Cell(static_cast<double>(shape.resident) / kMiB, 1), Cell(median(shape, &Round::others_busy), 2),
         Cell(median(shape, &Round::pass_ns), 1), Cell(median(shape, &Round::touching_all_ns), 1)});
    if (shape.sessions == kGoalSessions && !shape.in_turn)
      add_verdict(table, "with 1024 sessions, of the rate in the first row", share, kGoalOfSessions, " %");
  }
  return table;
}

}  // namespace

std::vector<Table> tables_of(const MeasureOptions& options, const Outcome& outcome) {
  return {rates(options, outcome), scaling(outcome)};
}

}  // namespace egret::bench_rpc
