#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace egret::base {

namespace {

// Checks the open descriptor, not the path, so that nobody can replace the file between check and read.
Status check_trust(int fd, const std::string& name, FileTrust trust) {
  struct stat info {};
  if (::fstat(fd, &info) < 0) return Status::system_error(name, errno);
  if (!S_ISREG(info.st_mode)) return Status::error(name + " is not a regular file");
  if ((info.st_mode & S_IWOTH) != 0) {
    return Status::error(name + " can be written by every user: chmod o-w it");
  }
  if (trust == FileTrust::kGiven) return Status::ok();
  if ((info.st_mode & S_IWGRP) != 0) return Status::error(name + " can be written by its group: chmod g-w it");
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return Status::error(name + " belongs to uid " + std::to_string(info.st_uid) + ", not to uid " +
                         std::to_string(::geteuid()) + " as which this process runs: remove it");
  }
  return Status::ok();
}

Status write_all(int fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Status::system_error("cannot write " + name, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return Status::ok();
}

// Opens `path`, which did not exist. What a crash has left there is removed.
UniqueFd create(const std::string& path) {
  ::unlink(path.c_str());
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640));
}

Status write_new(const std::string& path, std::string_view content) {
  const std::string name = quoted_if_odd(path);
  const UniqueFd file = create(path);
  if (!file.is_open()) return Status::system_error("cannot write " + name, errno);
  if (::fchmod(file.get(), 0640) < 0) return Status::system_error("cannot write " + name, errno);
  if (Status good = write_all(file.get(), content, name); !good) return good;
  if (::fsync(file.get()) < 0) return Status::system_error("cannot write " + name, errno);
  return Status::ok();
}

// A rename is on the disk when its directory is.
void sync_directory(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const UniqueFd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.is_open()) static_cast<void>(::fsync(directory.get()));  // some file systems cannot, and need not
}

}  // namespace

Expected<std::string> read_up_to(int fd, size_t limit, const std::string& failure) {
  std::string content(limit + 1, '\0');
  size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(fd, content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::system_error(failure, errno);
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  content.resize(length);
  return content;
}

Expected<std::string> read_trusted_file(const std::string& path, size_t limit, FileTrust trust) {
  const std::string name = quoted_if_odd(path);
  const int follow = trust == FileTrust::kOwn ? O_NOFOLLOW : 0;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow));
  if (!file.is_open()) return Status::system_error("cannot read " + name, errno);
  if (Status good = check_trust(file.get(), name, trust); !good) return good;
  auto content = read_up_to(file.get(), limit, "cannot read " + name);
  if (content && content.value().size() > limit) return Status::error(name + " is larger than " + size_text(limit));
  return content;
}

Status replace_file(const std::string& path, std::string_view content) {
  // Named by process: several of a host may keep the same file.
  const std::string beside = path + "." + std::to_string(::getpid()) + ".tmp";
  if (Status good = write_new(beside, content); !good) {
    ::unlink(beside.c_str());
    return good;
  }
  if (::rename(beside.c_str(), path.c_str()) < 0) {
    const int why = errno;
    ::unlink(beside.c_str());
    return Status::system_error("cannot replace " + quoted_if_odd(path), why);
  }
  sync_directory(path);
  return Status::ok();
}

}  // namespace egret::base
