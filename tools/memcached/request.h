// A parsed command line of memcached, before it becomes options of the daemons.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace egret::memcached {

// memcached's exit statuses, from sysexits.h.
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 64;   // EX_USAGE
inline constexpr int kNoUser = 67;  // EX_NOUSER
inline constexpr int kSystem = 71;  // EX_OSERR

// Why it does not start, and the exit status.
struct Refusal {
  std::string message;
  int status = kFailure;
};

enum class Action : uint8_t { kServe, kHelp, kHelpMarkdown, kVersion, kLicense };

using DaemonOptions = std::map<std::string, std::string>;

struct Request {
  Action action = Action::kServe;
  DaemonOptions proxy;
  DaemonOptions backend;
  std::vector<std::string> ignored;  // flags without a meaning here
  DaemonOptions told;                // their values, as rows of `stats settings`

  // Where clients connect; plan.cc combines these.
  int64_t port = 11211;  // 0: none, -1: any free one
  std::vector<std::string> interfaces;
  std::string unix_socket;
  bool tls = false;

  // Authentication and dialect.
  bool sasl = false;
  std::string auth_file;
  std::optional<std::string> protocol;

  uint64_t memory = 64u << 20;        // bytes
  uint64_t item_size_max = 1u << 20;  // bytes

  std::vector<std::string> listen;  // for sessions of other processes with the store

  // For the launcher itself.
  bool two_processes = false;
  bool doctor = false;
  int verbosity = 0;
  bool daemon = false;
  bool core_dumps = false;
  std::string user;
  std::string pid_file;
};

}  // namespace egret::memcached
