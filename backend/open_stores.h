// The stores of all partitions, from a configuration: which files they are kept in, whether what those hold is taken up
// again, and memory that is resident before anybody is served.
//
//   find_kept_seed ─ every partition's file is a cleanly stopped store's, of one run? ─▶ its hash seed, else a new one
//                                                                                         │
//   log_stores ◀─ one Executor, and in it one Store, per partition ◀─ open_stores ◀───────┘
//
// Cold path; the main thread. open_stores() uses a thread for each CPU while it lasts, since memory is what takes time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/config.h"
#include "backend/executor.h"
#include "base/clock.h"
#include "base/status.h"

namespace egret::backend {

// What the files of a run before say.
struct KeptSeed {
  std::optional<uint64_t> hash_seed = {};  // none: the stores start empty ...
  std::string why_not = {};                // ... because of this; empty without `warm_restart`
  bool is_first_run = false;               // there are no files yet
};
KeptSeed find_kept_seed(const Config& config);

// By number of partition. Errors: not enough memory, a file that cannot be had or that another process has.
using Executors = std::vector<std::unique_ptr<Executor>>;
base::Expected<Executors> open_stores(const Config& config, uint64_t hash_seed, const base::Clock& clock);

// One line of the memory that was got, and with `warm_restart` one of what was kept.
void log_stores(const Config& config, const KeptSeed& kept, const Executors& executors);

// The file of a partition under that value of `warm_restart`: in a directory partition-<n>, else <path>.<n>.
std::string warm_file(const std::string& path, uint32_t partition);

}  // namespace egret::backend
