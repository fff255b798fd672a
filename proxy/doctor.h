// What this host must have for the proxy's configuration to work, checked. Cold path; the main thread.
#pragma once

#include "base/doctor.h"
#include "proxy/config.h"

namespace egret::proxy {

// What a starting proxy should know and would not find out by itself at once.
base::Findings check_start(const Config& config);

// The whole of it, for --doctor: also the addresses that clients connect to, and each backend, with which it opens a
// session of its own for a moment. So it says whether the secret is the right one, too.
base::Findings examine(const Config& config);

// Of the file of users alone: read again at a reload.
void check_auth_file(const Config& config, base::Findings& findings);

}  // namespace egret::proxy
