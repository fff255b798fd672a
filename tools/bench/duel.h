// One case of load on a subject and a peer in turn (A B B A ...), and the ratios of their figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load.h"
#include "bench/rounds.h"
#include "bench/server/server.h"

namespace egret::bench {

// The two sides; either may be absent. Servers are started anew for each case, so that cases do not influence each
// other (memcached, for example, never moves a page from one slab class to another).
struct Sides {
  std::function<base::Expected<Server>()> start_subject;  // empty: only the peer is measured
  std::string peer_command;                               // empty: only the subject is measured
  uint64_t peer_memory_mib = 0;                           // 0: as much as the subject says it has
  RoundsSpec rounds;
};

struct CaseResult {
  std::string name;
  LoadSpec spec;
  std::string subject_name;
  std::string peer_name;
  std::vector<LoadResult> subject;  // by round; empty when the side is absent
  std::vector<LoadResult> peer;
  uint32_t discarded = 0;  // rounds that were repeated because the machine was not quiet

  uint64_t errors() const;
};

base::Expected<CaseResult> run_case(const std::string& name, const LoadSpec& spec, const Sides& sides,
                                    const std::atomic<bool>& stop);

Ratio ratio_of(const CaseResult& result, Metric metric);

// The fixed set of cases; `base` gives duration, warm-up, threads, seed, key distribution and read share.
struct SuiteCase {
  std::string name;
  LoadSpec spec;
};
std::vector<SuiteCase> suite_cases(const LoadSpec& base);

}  // namespace egret::bench
