// Cells and lines of the report's tables.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench_verbs/measurement.h"

namespace egret::bench_verbs {

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...);
std::string number(double value);            // three digits, and no exponent for large ones
std::string rate(const Figures& figures);    // in millions a second
std::string micros(const Figures& figures);  // mean / median / 99 %
std::string row(const std::string& head, const std::vector<std::string>& cells);
std::string header(const std::string& head, const std::vector<std::string>& names);

// The tables of `Further`: atomics, SENDs, numbers of queue pairs.
std::string further_tables(const Wanted& wanted, const Results& results);
// F, R, Q*, spin and window, with the arithmetic, and lines for the configuration files.
std::string suggestions(const Wanted& wanted, const Results& results);
// Each of its cells that was to be measured.
void each_further(const Further& further, const std::function<void(const Figures&)>& look);

}  // namespace egret::bench_verbs
