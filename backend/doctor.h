// What this host must have for the backend's configuration to work, checked. Cold path; the main thread.
#pragma once

#include "backend/config.h"
#include "base/doctor.h"

namespace egret::backend {

// What a starting backend should know and would not find out by itself at once.
base::Findings check_start(const Config& config);

// The whole of it, for --doctor: also the addresses, which a starting backend simply listens on.
base::Findings examine(const Config& config);

}  // namespace egret::backend
