// Looks up a host's name on a separate thread: a name server that does not answer takes many seconds, and the worker
// must serve its clients meanwhile.
//
//   connecting thread ─ NameLookup ─▶ thread: getaddrinfo ─ fd() readable ─▶ take()
//
// It may be destroyed before it has a result: the thread ends by itself and frees everything.
#pragma once

#include <memory>

#include "base/status.h"
#include "transport/device/notifier.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

class NameLookup {
 public:
  // `told`: is notified, too, when there is a result; null: nobody is.
  explicit NameLookup(const HostPort& at, std::shared_ptr<const device::Notifier> told = nullptr);
  int fd() const;
  // The result, once fd() is readable; null before. Once.
  base::Expected<AddressInfo> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread
};

}  // namespace egret::transport::verbs
