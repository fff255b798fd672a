#include "transport/name_lookup.h"

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/eventfd.h>

#include "base/local/helper_threads.h"
#include "base/unique_fd.h"

namespace egret::transport::verbs {

using base::Expected;
using base::Status;

struct NameLookup::Shared {
  HostPort at;
  std::shared_ptr<const device::Notifier> told;
  base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> is_done = false;  // from here on the rest is take()'s
  Status status = Status::ok();
  AddressInfo found;

  void finish(Expected<AddressInfo> result) {
    status = result.status();
    if (result) found = std::move(result.value());
    is_done.store(true, std::memory_order_release);
    ::eventfd_write(done.get(), 1);
    if (told != nullptr) told->notify();
  }
};

NameLookup::NameLookup(const HostPort& at, std::shared_ptr<const device::Notifier> told)
    : shared_(std::make_shared<Shared>()) {
  shared_->at = at;
  shared_->told = std::move(told);
  if (!base::may_start_helper_threads()) {
    shared_->finish(resolve(at, Resolve::kName));
    return;
  }
  try {
    std::thread([shared = shared_] { shared->finish(resolve(shared->at, Resolve::kName)); }).detach();
  } catch (const std::system_error& problem) {
    shared_->finish(Status::system_error("cannot look up " + at.host, problem.code().value()));
  }
}

int NameLookup::fd() const {
  return shared_->done.get();
}

Expected<AddressInfo> NameLookup::take() {
  if (!shared_->is_done.load(std::memory_order_acquire)) return AddressInfo();
  if (!shared_->status) return shared_->status;
  return std::move(shared_->found);
}

}  // namespace egret::transport::verbs
