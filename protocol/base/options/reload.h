// SIGHUP: reads the options again from the same sources as at the start (--config and --set). They take effect as a
// whole or not at all.
//
//   signal ─▶ Options::load ─▶ check ─▶ rows that need a restart keep their values ─▶ apply ─▶ in force
//                  └────────────┴─ wrong: one line names file, line and key; nothing has changed ─┘
//
// The outcome goes to the log and to the supervisor (notify.h). Thread: the daemon's control loop; any thread may read
// the counters.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counter.h"
#include "base/options/options.h"
#include "base/status.h"

namespace egret::base {

// Where options come from, by the command line.
struct OptionSources {
  std::optional<std::string> config_file;
  std::vector<std::string> set_arguments;
};

// Counts of reloads.
struct ReloadCounters {
  Counter succeeded;
  Counter failed;
};

class Reloader {
 public:
  // Puts these options in force as a whole, or returns an error that names an option and changes nothing.
  using Apply = std::function<Status(const Options& options)>;

  // `in_force`: as loaded from `sources` at the start. `check`: as ProgramInfo::check.
  Reloader(OptionSources sources, Options in_force, std::function<Status(const Options&)> check);

  // Returns whether it succeeded.
  bool reload(const Apply& apply, ReloadCounters& counters);
  const Options& in_force() const { return in_force_; }

 private:
  Status try_to(const Apply& apply);

  const OptionSources sources_;
  Options in_force_;
  const std::function<Status(const Options&)> check_;
};

}  // namespace egret::base
