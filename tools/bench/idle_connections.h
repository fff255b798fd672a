// Connections that are open and silent: each has sent one get, was answered, and has nothing to do since. What they
// cost a server is memory, and what it costs it to look past them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "bench/address.h"

namespace egret::bench {

class IdleConnections {
 public:
  // An answer that is not a miss's is an error, and so is one that does not come.
  static base::Expected<IdleConnections> open(const Address& address, uint32_t count);

  // Nothing has arrived on any of them, and none has been closed by the server.
  base::Status check() const;

  size_t size() const { return fds_.size(); }

 private:
  std::vector<base::UniqueFd> fds_;
};

// Lets this process, and those that it starts from now on, have as many files open as the system allows; returns how
// many. Call it once, at the beginning.
uint64_t raise_file_limit();

}  // namespace egret::bench
