// Processes that do nothing but spin, so that others have to share the CPUs with them. They end with their owner, and
// with this process should it die first.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace egret::bench {

class Neighbours {
 public:
  // Main thread only, while it is the only one.
  static base::Expected<Neighbours> start(uint32_t count);

  Neighbours(Neighbours&&) = default;
  Neighbours& operator=(Neighbours&&) = delete;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours();

  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  Neighbours() = default;

  std::vector<pid_t> pids_;
};

}  // namespace egret::bench
