// Checks that this host has what the proxy's configuration needs. Cold path; the main thread.
#pragma once

#include "base/service/doctor.h"
#include "proxy/config.h"

namespace egret::proxy {

// The checks at the start: problems that a running proxy would notice only later.
base::Findings check_start(const Config& config);

// All checks, for --doctor: also the addresses that clients connect to, and each backend. It opens a session with each
// for a moment, so it checks the secret, too.
base::Findings examine(const Config& config);

// Checks only the files of users, as a reload does.
void check_users(const Config& config, base::Findings& findings);

}  // namespace egret::proxy
