#include "memcached/identity.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace egret::memcached {

std::optional<Refusal> leave_root(const std::string& user) {
  if (::getuid() != 0 && ::geteuid() != 0) return {};
  if (user.empty()) return Refusal{"must add '-u root' to start as root", kUsage};
  const passwd* const known = ::getpwnam(user.c_str());
  if (known == nullptr) return Refusal{"can't find the user " + user + " to switch to", kNoUser};
  // EPERM: in a container without CAP_SETGID there are no groups to drop.
  if (::setgroups(0, nullptr) < 0 && errno != EPERM) {
    return Refusal{std::string("failed to drop supplementary groups: ") + std::strerror(errno), kSystem};
  }
  if (::setgid(known->pw_gid) < 0 || ::setuid(known->pw_uid) < 0) {
    return Refusal{"failed to assume identity of user " + user, kSystem};
  }
  return {};
}

std::optional<Refusal> allow_core_dumps() {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  const rlimit possible{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_CORE, &all) != 0) ::setrlimit(RLIMIT_CORE, &possible);
  if (::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur != 0) return {};
  return Refusal{"failed to ensure corefile creation", kSystem};
}

}  // namespace egret::memcached
