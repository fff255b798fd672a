// The report's two forms. Both are made from the values of harness/report_data.h alone.
#pragma once

#include <string>

#include "bench_paradigms/harness/report_data.h"

namespace egret::bench_paradigms {

// Tables for people: one for each workload, then its verdict, and why.
std::string to_markdown(const Report& report);
// Everything.
std::string to_json(const Report& report);

}  // namespace egret::bench_paradigms
