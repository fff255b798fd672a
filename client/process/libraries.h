// Libraries that only some programs need: libibverbs and librdmacm for rdma: addresses, libcrypto for a secret. libegret.so
// loads them when they are asked for (link/); a program that is linked with them has them already.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace egret::client {

enum class Library : uint8_t { kVerbs, kCrypto };

// Null: all of them are there.
using LibraryLoader = base::Status (*)(Library library);
inline std::atomic<LibraryLoader> library_loader{nullptr};

// Before a function of it is called. An error says what is missing.
inline base::Status need(Library library) {
  const LibraryLoader load = library_loader.load(std::memory_order_acquire);
  return load == nullptr ? base::Status::ok() : load(library);
}

}  // namespace egret::client
