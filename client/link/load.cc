#include <mutex>
#include <string>

#include <dlfcn.h>

#include "client/link/late.h"
#include "client/process/libraries.h"

namespace egret::client {

using base::Status;

namespace {

constexpr const char* kVerbs = "libibverbs.so.1";
constexpr const char* kRdmacm = "librdmacm.so.1";
constexpr const char* kCrypto = "libcrypto.so.3";

std::mutex mutex;

// It stays loaded, as the devices' sessions would be lost with it.
Status find(const char* library, std::span<const LateSymbol> symbols) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status::error(std::string("cannot load ") + library + ": " + ::dlerror());
  for (const LateSymbol& symbol : symbols) {
    if (*symbol.pointer != nullptr) continue;
    void* const found = ::dlsym(handle, symbol.name);
    if (found == nullptr) return Status::error(std::string(library) + " has no " + symbol.name + ": it is too old");
    *symbol.pointer = found;
  }
  return Status::ok();
}

Status load(Library library) {
  const std::lock_guard lock(mutex);
  if (library == Library::kCrypto) return find(kCrypto, crypto_symbols());
  if (Status found = find(kVerbs, verbs_symbols()); !found) return found;
  return find(kRdmacm, rdmacm_symbols());
}

// When libegret.so itself is loaded, before anything of it is called.
[[gnu::constructor]] void set_loader() {
  library_loader.store(load, std::memory_order_release);
}

}  // namespace
}  // namespace egret::client
