// The tables of 004 (Table I, Figures 1 and 8) with this pair of hosts' figures, and what they suggest, as Markdown.
#pragma once

#include <string>

#include "bench_verbs/measurement.h"

namespace egret::bench_verbs {

// Rates are in millions a second. A cell for which nothing completed is "-".
std::string to_markdown(const Wanted& wanted, const Results& results);

// Cells of which that is so.
uint64_t empty_cells(const Results& results);

}  // namespace egret::bench_verbs
