#include "base/local/withheld.h"

#include <atomic>

namespace egret::base {

namespace {
std::atomic<const WithheldList*> kept{nullptr};
}

void keep_withheld(const WithheldList& list) {
  kept.store(&list, std::memory_order_release);
}

Withheld::Withheld(int fd) : fd_(fd) {
  if (const WithheldList* const list = kept.load(std::memory_order_acquire)) list->add(fd_);
}

Withheld::~Withheld() {
  const WithheldList* const list = kept.load(std::memory_order_acquire);
  if (fd_ >= 0 && list != nullptr) list->remove(fd_);
}

}  // namespace egret::base
