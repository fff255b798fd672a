#include "client/process/devices.h"

#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/process/bare.h"

namespace egret::client {

namespace {

constexpr std::string_view kDevices = "/dev/infiniband/";
constexpr std::string_view kOfDevices = "anon_inode:[infiniband";  // channels of events and completions

alignas(dirent64) char buffer[64 * 1024];

// Whether the open file `number` ("0", "1", …) is of a device.
bool is_of_device(const char* number) {
  char path[sizeof "/proc/self/fd/" + NAME_MAX], target[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%s", number);
  const ssize_t length = ::readlink(path, target, sizeof target);
  const std::string_view is(target, length > 0 ? static_cast<size_t>(length) : 0);
  return is.starts_with(kDevices) || is.starts_with(kOfDevices);
}

void replace(int fd, int nothing) {
  if (nothing >= 0) {
    bare::dup3(nothing, fd, O_CLOEXEC);
  } else {
    bare::close(fd);
  }
}

int open_nothing() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  return null >= 0 ? null : ::eventfd(0, EFD_CLOEXEC);
}

void let_go_of_files() {
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int nothing = open_nothing();
  for (long got = 1; got > 0;) {
    got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const std::string_view name(entry->d_name);
      int fd = -1;
      std::from_chars(name.data(), name.data() + name.size(), fd);
      if (fd >= 0 && is_of_device(entry->d_name)) replace(fd, nothing);
    }
  }
  bare::close(nothing);
  bare::close(folder);
}

// A line of /proc/self/maps: "first-end rights offset device inode    path", the numbers in hexadecimal.
void cover(std::string_view line) {
  if (line.find(kDevices) == std::string_view::npos) return;
  const char* const end_of_line = line.data() + line.size();
  uintptr_t first = 0, end = 0;
  const auto dash = std::from_chars(line.data(), end_of_line, first, 16);
  if (dash.ptr == end_of_line || *dash.ptr != '-') return;
  std::from_chars(dash.ptr + 1, end_of_line, end, 16);
  if (end <= first) return;
  ::mmap(reinterpret_cast<void*>(first), end - first, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void let_go_of_pages() {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t held = 0;  // of a line whose end has not been read
  for (ssize_t got = 1; got > 0;) {
    got = bare::read(maps, buffer + held, sizeof buffer - held);
    if (got > 0) held += static_cast<size_t>(got);
    std::string_view rest(buffer, held);
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      cover(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    std::memmove(buffer, rest.data(), rest.size());
    held = rest.size();
  }
  bare::close(maps);
}

}  // namespace

void let_go_of_devices() {
  let_go_of_files();
  let_go_of_pages();
}

}  // namespace egret::client
