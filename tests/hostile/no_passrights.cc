// Preloaded: a kernel without SO_PASSRIGHTS (before Linux 6.16).
#include <cerrno>

#include <dlfcn.h>
#include <sys/socket.h>

namespace {

constexpr int kPassRights = 83;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  static auto* const real = next<int(int, int, int, const void*, socklen_t)>("setsockopt");
  if (level != SOL_SOCKET || name != kPassRights) return real(fd, level, name, value, size);
  errno = ENOPROTOOPT;
  return -1;
}

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  static auto* const real = next<int(int, int, int, void*, socklen_t*)>("getsockopt");
  if (level != SOL_SOCKET || name != kPassRights) return real(fd, level, name, value, size);
  errno = ENOPROTOOPT;
  return -1;
}
