// What this host must have for the backend's configuration to work, checked. Cold path; the main thread.
#pragma once

#include <cstdint>

#include "backend/config.h"
#include "base/doctor.h"

namespace egret::backend {

// What a starting backend should know and would not find out by itself at once.
base::Findings check_start(const Config& config);

// The whole of it, for --doctor: also the addresses, which a starting backend simply listens on.
base::Findings examine(const Config& config);

// What the kernel says of huge pages.
struct HugePages {
  uint64_t free = 0;               // explicit ones of 2 MiB
  bool makes_transparent = false;  // where a process advises it to
};
HugePages look_at_huge_pages();
// Whether a store of so much memory will have some.
void check_huge_pages(const HugePages& offered, const Config& config, base::Findings& findings);

// What to do where an address of `listen` cannot be listened on: the end of a line that says so, or nothing.
std::string listen_advice(const Config& config);

}  // namespace egret::backend
