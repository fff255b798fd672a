#include "call_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace egret::exhaustion {
namespace {

constexpr char kMagic[8] = {'E', 'G', 'R', 'E', 'T', 'F', 'C', '1'};
constexpr uint32_t kAll = 65536;

struct Header {
  char magic[8];
  uint32_t kinds;
  uint32_t reserved;
  std::atomic<uint64_t> seed;
  char more[40];
};
struct Kind {
  char name[24];
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> failed;
  std::atomic<uint64_t> nth;
  std::atomic<uint32_t> rate;
  char reserved[12];
};
struct File {
  Header header;
  Kind kinds[kCalls];
};
static_assert(sizeof(Header) == 64 && sizeof(Kind) == 64);

constexpr std::array<std::string_view, kCalls> kNames = {
    "open",           "socket",       "accept",          "mmap", "epoll_ctl", "epoll_create",  "eventfd",
    "timerfd_create", "memfd_create", "posix_fallocate", "pipe", "add_seals", "pthread_create"};

[[noreturn]] void die(const char* what, std::string_view which) {
  std::fprintf(stderr, "libegret_fail_calls: %s '%.*s'\n", what, static_cast<int>(which.size()), which.data());
  _exit(70);
}

std::string file_path() {
  const char* const wanted = std::getenv("EGRET_FAIL_CALLS_FILE");
  std::string path = wanted == nullptr ? "" : wanted;
  if (const size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

// CALL:N. An entry that cannot be read ends the process: a test that makes nothing fail would pass.
void read_entry(std::string_view entry, File& file) {
  const size_t colon = entry.find(':');
  for (uint32_t i = 0; i < kCalls && colon != std::string_view::npos; ++i) {
    if (entry.substr(0, colon) != kNames[i]) continue;
    const std::string_view number = entry.substr(colon + 1);
    uint64_t nth = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), nth);
    if (error != std::errc() || end != number.data() + number.size() || nth == 0) break;
    file.kinds[i].nth = nth;
    return;
  }
  die("EGRET_FAIL_CALLS: not CALL:N with a known CALL:", entry);
}

// By system calls, past our own functions.
File* map_file() {
  const std::string path = file_path();
  if (path.empty()) die("EGRET_FAIL_CALLS_FILE is not set", "");
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(static_cast<int>(fd), sizeof(File)) != 0) die("cannot write", path);
  const long at = ::syscall(SYS_mmap, 0L, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
  if (at < 0 && at > -4096) die("cannot map", path);
  ::close(static_cast<int>(fd));
  return reinterpret_cast<File*>(at);
}

File* make_file() {
  File* const file = map_file();
  file->header.kinds = kCalls;
  for (uint32_t i = 0; i < kCalls; ++i) kNames[i].copy(file->kinds[i].name, sizeof(Kind::name) - 1);
  const char* const wanted = std::getenv("EGRET_FAIL_CALLS");
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    read_entry(rest.substr(0, comma), *file);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  std::memcpy(file->header.magic, kMagic, sizeof kMagic);  // last: before it, a reader sees no file
  return file;
}

File& file() {
  static File* const instance = make_file();
  return *instance;
}

// splitmix64: every bit of the outcome depends on every bit of what goes in.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t count_call(Call call) {
  return file().kinds[static_cast<uint32_t>(call)].calls.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool must_fail(Call call, uint64_t number) {
  Kind& kind = file().kinds[static_cast<uint32_t>(call)];
  const uint32_t rate = kind.rate.load(std::memory_order_relaxed);
  const uint64_t draw = mixed(file().header.seed.load(std::memory_order_relaxed) + number * kCalls) % kAll;
  const bool fails = draw < rate || kind.nth.load(std::memory_order_relaxed) == number;
  if (fails) kind.failed.fetch_add(1, std::memory_order_relaxed);
  return fails;
}

}  // namespace egret::exhaustion
