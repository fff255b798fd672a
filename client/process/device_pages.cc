#include "client/process/device_pages.h"

#include <cstdio>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace egret::client {

namespace {

constexpr std::string_view kDevices = " /dev/infiniband/";

// A line of /proc/self/maps: "first-end rights offset device inode    path".
void cover(const char* line) {
  unsigned long first = 0, end = 0;
  if (std::strstr(line, kDevices.data()) == nullptr || std::sscanf(line, "%lx-%lx ", &first, &end) != 2) return;
  ::mmap(reinterpret_cast<void*>(first), end - first, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

}  // namespace

void cover_device_pages() {
  static char buffer[64 * 1024];  // longer than any line
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t held = 0;
  for (ssize_t got = 1; got > 0;) {
    got = ::read(maps, buffer + held, sizeof buffer - 1 - held);
    if (got > 0) held += static_cast<size_t>(got);
    buffer[held] = '\0';
    char* line = buffer;
    for (char* end = std::strchr(line, '\n'); end != nullptr; end = std::strchr(line, '\n')) {
      *end = '\0';
      cover(line);
      line = end + 1;
    }
    held -= static_cast<size_t>(line - buffer);
    std::memmove(buffer, line, held);
  }
  ::close(maps);
}

}  // namespace egret::client
