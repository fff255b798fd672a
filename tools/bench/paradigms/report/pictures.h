// The report as pictures: verbs of an op; rate by value size; latency by rate. Each is a complete SVG file.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench_paradigms/harness/report_data.h"

namespace egret::bench_paradigms {

struct Picture {
  std::string name;  // of its file, "verbs.svg"
  std::string svg;
};

// Those that the report has figures for: rates by value size need two sizes, and times or a card to model; latencies need
// two rates, and times.
std::vector<Picture> draw_pictures(const Report& report);
// Into that folder, which is made if it is not there.
base::Status write_pictures(const Report& report, const std::string& folder);

}  // namespace egret::bench_paradigms
