// Which paradigm did best on one workload, and why. From the report's values alone.
//
// In the running: rows without a wrong answer, none of whose marks the device breaks (as told by --breaks, or shown by what was
// lost). The best has most ops a second; of those whose rounds come within 5 % of its, the one with the fewest marks, then
// the least server CPU, then the least p99. A mark that the device promises to keep (W, by ibv_query_qp_data_in_order) does
// not count; one that it neither promises nor is known to break does.
#pragma once

#include <string>

#include "bench_paradigms/harness/report_data.h"

namespace egret::bench_paradigms {

struct Verdict {
  std::string best;  // id; empty: there is none, and `why` says so
  std::string why;   // a sentence
  // Ids; empty: none.
  std::string without_marks;  // the best of those that rely only on what the device promises
  std::string best_p50;
  std::string least_server_cpu;
};

// Among the rows of that class.
Verdict judge(const Report& report, const CaseReport& one, Class rank);

}  // namespace egret::bench_paradigms
