#include "bench_store/probes.h"

#include <algorithm>
#include <cstdio>

namespace egret::bench_store {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Cell> row_of(const std::string& name, const std::vector<double>& ns, const std::vector<double>& ratios) {
  const auto [least, greatest] = std::minmax_element(ns.begin(), ns.end());
  const double middle = median(ns);
  return {name,
          Cell(middle, 1),
          Cell(*least, 1),
          Cell(*greatest, 1),
          Cell(1e3 / middle, 2),
          ratios.empty() ? Cell("100") : Cell(median(ratios) * 100, 0)};
}

}  // namespace

std::vector<std::string> probe_columns(const std::string& control) {
  return {"what", "ns/op", "least", "greatest", "M ops/s", "speed, % of " + control};
}

void run_probes(std::vector<Probe> probes, const Probe& control, const ProbeOptions& options, Table& table) {
  std::erase_if(probes, [&](const Probe& each) { return each.name.find(options.only) == std::string::npos; });
  if (probes.empty()) return;
  std::vector<double> control_ns;
  std::vector<std::vector<double>> ns(probes.size());
  std::vector<std::vector<double>> ratios(probes.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < probes.size(); ++i) {
      control_ns.push_back(control.measure(options.seconds / 2));
      ns[i].push_back(probes[i].measure(options.seconds));
      ratios[i].push_back(control_ns.back() / ns[i].back());
    }
    std::fprintf(stderr, "store-bench: %s, round %d of %d\n", table.name.c_str(), round + 1, options.rounds);
  }
  table.rows.push_back(row_of(control.name, control_ns, {}));
  for (size_t i = 0; i < probes.size(); ++i) table.rows.push_back(row_of(probes[i].name, ns[i], ratios[i]));
}

}  // namespace egret::bench_store
