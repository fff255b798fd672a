// Checks that this host has what the backend's configuration needs. Cold path; the main thread.
#pragma once

#include <cstdint>

#include "backend/config.h"
#include "base/service/doctor.h"

namespace egret::backend {

// The checks at the start: problems that a running backend would notice only later.
base::Findings check_start(const Config& config);

// All checks, for --doctor: also the addresses, which need no check at the start, since the backend listens there.
base::Findings examine(const Config& config);

// For --check-config: what the limits of sessions are, and the arithmetic of those that follow from this host.
std::string explain_limits(const Config& config);

// The kernel's huge pages.
struct HugePages {
  uint64_t free = 0;               // explicit ones of 2 MiB
  bool makes_transparent = false;  // honours madvise(MADV_HUGEPAGE)
};
HugePages look_at_huge_pages();
// Checks whether the stores will get huge pages.
void check_huge_pages(const HugePages& offered, const Config& config, base::Findings& findings);

// Advice for the case that listening failed: the end of the error line, or nothing.
std::string listen_advice(const Config& config);

}  // namespace egret::backend
