// How libegret.so calls functions of libraries that it is not linked with.
//
//   transport ─ calls ibv_alloc_pd ─▶ the function of that name in verbs.cc ─▶ its pointer, found when the library was loaded
//
// Private to this folder.
#pragma once

#include <span>

#include "base/status.h"

namespace egret::client {

// A function that is found by its name; the pointer is null until its library is loaded.
struct LateSymbol {
  const char* name;
  void** pointer;
};

std::span<const LateSymbol> verbs_symbols();   // of libibverbs
std::span<const LateSymbol> rdmacm_symbols();  // of librdmacm
std::span<const LateSymbol> crypto_symbols();  // of libcrypto

}  // namespace egret::client

// Defines the function `name` as a call of the one that will be loaded. Its type is that of its header.
#define EGRET_LATE(result, name, parameters, arguments)                     \
  namespace {                                                               \
  void* late_##name = nullptr;                                              \
  }                                                                         \
  extern "C" __attribute__((visibility("hidden"))) result name parameters { \
    return reinterpret_cast<result(*) parameters>(late_##name) arguments;   \
  }                                                                         \
  static_assert(true)
#define EGRET_LATE_SYMBOL(name) \
  { #name, &late_##name }
