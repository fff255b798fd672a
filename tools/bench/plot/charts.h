// The two pictures. Each function returns a complete SVG file.
#pragma once

#include <string>

#include "bench_plot/data.h"

namespace egret::bench_plot {

// CPU for each op: a group of bars for each row, all of a group relative to memcached's median (without a memcached: to
// the first bar's), since rows differ by a factor of a hundred; the µs stand beside the bars. Whiskers: least and
// greatest of the rounds.
std::string draw_cpu(const Data& data);

// Latency against throughput: a panel for each sweep, in it a line for the p50 and one for the p99 of each contender.
std::string draw_throughput_latency(const Data& data);

}  // namespace egret::bench_plot
