// SIGHUP: the options are read again, from where they came at the start (--config and --set), and take effect as a
// whole or not at all.
//
//   signal ─▶ Options::load ─▶ check ─▶ rows that need a restart keep their values ─▶ apply ─▶ in force
//                  └────────────┴─ wrong: one line names file, line and key; nothing has changed ─┘
//
// How it went goes to the log and to whoever started us (notify.h). Thread: that of the daemon's control loop; the
// counters are for any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counter.h"
#include "base/options.h"
#include "base/status.h"

namespace egret::base {

// Where options come from, as the command line said.
struct OptionSources {
  std::optional<std::string> config_file;
  std::vector<std::string> set_arguments;
};

// How reloads have gone.
struct ReloadCounters {
  Counter succeeded;
  Counter failed;
};

class Reloader {
 public:
  // Makes these the options in force, whole or (a failure, which names the option) not at all.
  using Apply = std::function<Status(const Options& options)>;

  // `in_force`: as loaded from `sources` at the start. `check`: what the table cannot express, as ProgramInfo's.
  Reloader(OptionSources sources, Options in_force, std::function<Status(const Options&)> check);

  // Returns whether it went well.
  bool reload(const Apply& apply, ReloadCounters& counters);
  const Options& in_force() const { return in_force_; }

 private:
  Status try_to(const Apply& apply);

  const OptionSources sources_;
  Options in_force_;
  const std::function<Status(const Options&)> check_;
};

}  // namespace egret::base
