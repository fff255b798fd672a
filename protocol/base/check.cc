#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace egret::base {

namespace {
std::atomic<CheckHandler> check_handler{nullptr};
}

void set_check_handler(CheckHandler handler) {
  check_handler.store(handler, std::memory_order_release);
}

void check_failed(const char* file, int line, const char* text) {
  if (const CheckHandler handler = check_handler.load(std::memory_order_acquire)) handler(file, line, text);
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
  std::abort();
}

}  // namespace egret::base
