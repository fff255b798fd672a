// Preloaded: a system whose sockets let few connections wait (net.core.somaxconn): as many as EGRET_BACKLOG says.
#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/socket.h>

extern "C" int listen(int fd, int backlog) noexcept {
  static auto* const real = reinterpret_cast<int (*)(int, int)>(::dlsym(RTLD_NEXT, "listen"));
  const char* const most = std::getenv("EGRET_BACKLOG");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return real(fd, most == nullptr ? backlog : std::min(backlog, std::atoi(most)));
}
