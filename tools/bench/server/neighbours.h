// Processes that only spin, so that others must share the CPUs with them. They end with their owner, or when this
// process dies.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace egret::bench {

class Neighbours {
 public:
  // Call it on the main thread, before there are others.
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
