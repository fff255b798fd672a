// For libraries that LD_PRELOAD puts before libc and that define some of its functions: how they call libc's own.
#pragma once

#include <cstdio>

#include <dlfcn.h>
#include <unistd.h>

#define EGRET_EXPORT extern "C" __attribute__((visibility("default")))

namespace egret {

// libc's function of that name. Without it the process ends: a test that is not told of a call would pass.
template <typename Function>
Function* original(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s behind the library that is loaded before libc\n", name);
    ::_exit(70);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace egret
