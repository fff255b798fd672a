#include "base/service/inherited.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"

namespace egret::base {

namespace {

constexpr int kMostInherited = 65536;

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

Expected<std::vector<std::string>> inherited_names(const char* listen_pid, const char* listen_fds,
                                                   const char* listen_fdnames, pid_t self) {
  std::vector<std::string> names;
  if (listen_pid == nullptr || listen_fds == nullptr) return names;
  const auto pid = number_in(listen_pid);
  const auto count = number_in(listen_fds);
  if (!pid) return Status::error("LISTEN_PID is no process: " + base::quoted(listen_pid));
  if (*pid != self) return names;
  if (!count || *count < 0 || *count > kMostInherited) {
    return Status::error("LISTEN_FDS is no number of descriptors: " + base::quoted(listen_fds));
  }
  names.resize(static_cast<size_t>(*count), "unknown");
  if (listen_fdnames == nullptr || *count == 0) return names;
  std::string_view rest = text_of(listen_fdnames);
  for (size_t index = 0; index < names.size(); ++index) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const bool is_last = index + 1 == names.size();
    if (is_last != (end == rest.size())) {
      return Status::error("LISTEN_FDNAMES names another number of descriptors than LISTEN_FDS");
    }
    names[index] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

Expected<std::vector<InheritedFd>> take_inherited() {
  auto names =
      inherited_names(std::getenv("LISTEN_PID"), std::getenv("LISTEN_FDS"), std::getenv("LISTEN_FDNAMES"), ::getpid());
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  if (!names) return names.status();
  std::vector<InheritedFd> inherited;
  int fd = kFirstInherited;
  for (std::string& name : names.value()) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0) {
      return Status::system_error("LISTEN_FDS: descriptor " + std::to_string(fd), errno);
    }
    inherited.push_back({UniqueFd(fd++), std::move(name)});
  }
  return inherited;
}

}  // namespace egret::base
