// Opens the stores of all partitions: chooses their files, decides whether kept items are used, and makes the memory
// resident before clients are served.
//
//   find_kept_seed ─ every partition's file is a cleanly stopped store's, of one run? ─▶ its hash seed, else a new one
//                                                                                         │
//   log_stores ◀─ one Executor, and in it one Store, per partition ◀─ open_stores ◀───────┘
//
// Cold path; the main thread. open_stores() uses one thread per CPU, since making memory resident takes most of the
// time.
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

// The result of reading the files of the run before.
struct KeptSeed {
  std::optional<uint64_t> hash_seed = {};  // none: the stores start empty ...
  std::string why_not = {};                // ... because of this; empty without `warm_restart`
  bool is_first_run = false;               // there are no files yet
};
KeptSeed find_kept_seed(const Config& config);

// Indexed by partition. Errors: not enough memory; a file cannot be opened, or another process has locked it.
using Executors = std::vector<std::unique_ptr<Executor>>;
base::Expected<Executors> open_stores(const Config& config, uint64_t hash_seed, const base::Clock& clock);

// Logs one line about the memory and, with `warm_restart`, one about the kept items.
void log_stores(const Config& config, const KeptSeed& kept, const Executors& executors);

// The file of a partition for that value of `warm_restart`: in a directory partition-<n>, else <path>.<n>.
std::string warm_file(const std::string& path, uint32_t partition);

}  // namespace egret::backend
