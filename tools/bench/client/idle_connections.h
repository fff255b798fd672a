// Open, idle connections: each has sent one get and received the answer. They cost the server memory, and the time to
// skip them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "bench/client/address.h"

namespace egret::bench {

class IdleConnections {
 public:
  // The expected answer is a miss; any other answer, or none, is an error.
  static base::Expected<IdleConnections> open(const Address& address, uint32_t count);

  // Ok: no connection has received anything, and the server has closed none.
  base::Status check() const;

  size_t size() const { return fds_.size(); }

 private:
  std::vector<base::UniqueFd> fds_;
};

// Raises the limit of open files of this process and its future children to the most that the system allows; returns
// it. Call it once, at the beginning.
uint64_t raise_file_limit();

}  // namespace egret::bench
