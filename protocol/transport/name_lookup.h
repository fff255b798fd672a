// Looks a host's name up on a thread of its own: a name server that does not answer takes many seconds, and the worker
// that connects has clients to serve meanwhile.
//
//   connecting thread ─ NameLookup ─▶ thread: getaddrinfo ─ fd() readable ─▶ take()
//
// Whoever loses interest destroys it: the thread ends by itself and leaves nothing behind.
#pragma once

#include <memory>

#include "base/status.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

class NameLookup {
 public:
  explicit NameLookup(const HostPort& at);
  int fd() const;
  // The result, once fd() is readable; null before. Once.
  base::Expected<AddressInfo> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread
};

}  // namespace egret::transport::verbs
