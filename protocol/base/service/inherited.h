// Descriptors that the supervisor (systemd, egret-memcached) opened for this process, by the protocol of
// sd_listen_fds(3): they follow standard error. LISTEN_PID names the process that they are for, LISTEN_FDS their
// number, LISTEN_FDNAMES their names.
//
// The protocol is stable and takes a dozen lines; libsystemd would bring half a dozen libraries into every process and
// image. notify.h is the opposite direction.
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
  std::string name;  // FileDescriptorName=, or its FDNAME in the descriptor store; "unknown" without one
};

// The names of the descriptors from kFirstInherited on, by the values of the three variables (null: not set). Empty if
// they are for another process than `self`.
Expected<std::vector<std::string>> inherited_names(const char* listen_pid, const char* listen_fds,
                                                   const char* listen_fdnames, pid_t self);

// Takes the inherited descriptors and unsets the variables. main() calls it once, before anything else opens a
// descriptor. The descriptors become close-on-exec.
Expected<std::vector<InheritedFd>> take_inherited();

}  // namespace egret::base
