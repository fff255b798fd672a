// The measured rates as the description of a card, which the model of `egret-bench paradigms` reads.
#pragma once

#include <string>

#include "base/status.h"
#include "bench_nic/nic.h"
#include "bench_verbs/measurement.h"

namespace egret::bench_verbs {

// Best pipelined rates, by size where sizes were measured. What was not measured stays unknown. The link's rate is the
// most payload that came through; the cache of queue pairs is read off the sweep of READs.
bench_nic::Nic nic_of(const Results& results);
// Replaces the file at once or not at all.
base::Status write_nic_file(const std::string& path, const Results& results);

}  // namespace egret::bench_verbs
