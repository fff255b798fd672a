// Which file a descriptor is of: tells a socket or a disk's file from another one that has its number by now. All epolls,
// eventfds and timers are one inode: of these it only says that it is one of them.
#pragma once

#include <cstdint>

#include <sys/stat.h>

namespace egret::base {

struct FileId {
  uint64_t device = 0, inode = 0;  // both 0: of no file

  // Of no file, if the descriptor is closed.
  static FileId of(int fd) {
    struct stat info {};
    if (fd < 0 || ::fstat(fd, &info) != 0) return {};
    return {.device = info.st_dev, .inode = info.st_ino};
  }
  bool operator==(const FileId&) const = default;
};

}  // namespace egret::base
