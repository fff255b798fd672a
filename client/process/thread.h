// Which thread this is, in about a nanosecond. Another thread may get the number of one that has ended.
#pragma once

#include <cstdint>

#include <pthread.h>

namespace egret::client {

inline uintptr_t this_thread() {
  return static_cast<uintptr_t>(::pthread_self());
}

}  // namespace egret::client
