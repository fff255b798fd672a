// Measurements that alternate with a control: each measurement of a round follows one of the control, so that other
// load of the machine affects both alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_store/table.h"

namespace egret::bench_store {

struct Probe {
  std::string name;
  // Works for about so many seconds of CPU time and returns the ns per op.
  std::function<double(double seconds)> measure;
};

struct ProbeOptions {
  int rounds = 5;
  double seconds = 0.2;  // of each measurement; the control takes half
  std::string only;      // probes whose name contains this
};

// Rows of medians: name, ns/op, least, greatest, M ops/s, control ÷ this in %. The control is the first row.
void run_probes(std::vector<Probe> probes, const Probe& control, const ProbeOptions& options, Table& table);
std::vector<std::string> probe_columns(const std::string& control);

}  // namespace egret::bench_store
