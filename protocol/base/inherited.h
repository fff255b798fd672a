// Descriptors that whoever started this process opened for it, by sd_listen_fds(3)'s protocol: they follow standard
// error, and LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES say for whom they are, how many, and what each is called.
//
// The protocol is a dozen lines and promised to stay as it is; libsystemd would bring half a dozen libraries with it
// into every process and image. notify.h is its other half.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::base {

inline constexpr int kFirstInherited = 3;

struct InheritedFd {
  UniqueFd fd;
  std::string name;  // FileDescriptorName=, or what it was put into the manager's store as; "unknown" without one
};

// The names of the descriptors from kFirstInherited on, from what the three variables say (null: not set). None if they
// are for another process than `self`.
Expected<std::vector<std::string>> inherited_names(const char* listen_pid, const char* listen_fds,
                                                   const char* listen_fdnames, pid_t self);

// Takes what this process was given, and unsets the variables: to be called once, by main(), before anything else opens
// a descriptor that it means to keep. The descriptors are closed when another program is executed.
Expected<std::vector<InheritedFd>> take_inherited();

}  // namespace egret::base
