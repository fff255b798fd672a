#include "base/local/helper_threads.h"

#include <atomic>

namespace egret::base {

namespace {
std::atomic<bool> are_allowed{true};
}

void allow_helper_threads(bool allowed) {
  are_allowed.store(allowed, std::memory_order_relaxed);
}

bool may_start_helper_threads() {
  return are_allowed.load(std::memory_order_relaxed);
}

}  // namespace egret::base
