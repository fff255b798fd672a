#include "base/options/secret.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace egret::base {

namespace {

constexpr mode_t kOthersMode = S_IRWXG | S_IRWXO;

std::string octal(mode_t mode) {
  std::string text = "0";
  for (int shift = 6; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

// Checks the open descriptor, not the path, so that nobody can replace the file between check and read.
Status check_file(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) < 0) return Status::system_error(name, errno);
  if (!S_ISREG(info.st_mode)) return Status::error(name + " is not a regular file");
  if ((info.st_mode & kOthersMode) != 0) {
    return Status::error(name + " has mode " + octal(info.st_mode) +
                         ", so that others than its owner may use it: chmod 0400 it");
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return Status::error(name + " belongs to uid " + std::to_string(info.st_uid) +
                         ": it must be root's or that of uid " + std::to_string(::geteuid()) +
                         ", as which this process runs");
  }
  return Status::ok();
}

}  // namespace

Expected<Secret> read_secret(const std::string& path) {
  const std::string name = quoted_if_odd(path);
  // O_NONBLOCK: opening a pipe must not block.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return Status::system_error("cannot read " + name, errno);
  if (Status good = check_file(file.get(), name); !good) return good;
  auto read = read_up_to(file.get(), kMaxSecretBytes + 1, "cannot read " + name);  // room for a newline
  if (!read) return read.status();
  std::string& bytes = read.value();
  if (bytes.ends_with('\n')) bytes.pop_back();
  if (bytes.size() < kMinSecretBytes || bytes.size() > kMaxSecretBytes) {
    const std::string size = bytes.size() > kMaxSecretBytes ? "more than 4096" : std::to_string(bytes.size());
    return Status::error(name + " holds a secret of " + size +
                         " bytes: 16 to 4096 are needed (make one: head -c 32 /dev/urandom | base64)");
  }
  return Secret(std::move(bytes));
}

}  // namespace egret::base
