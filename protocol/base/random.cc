#include "base/random.h"

#include <cerrno>

#include <sys/random.h>

#include "base/check.h"

namespace egret::base {

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    EGRET_CHECK(got > 0 || errno == EINTR);  // a signal may interrupt the wait, or a request of more than 256 bytes
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

uint64_t random_u64() {
  uint64_t value = 0;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace egret::base
