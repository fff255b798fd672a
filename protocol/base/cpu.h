// The processors a process may use, and what a poll loop tells the one it runs on.
#pragma once

#include <vector>

namespace egret::base {

// The CPUs that this process may run on (its affinity, as a container or unit set it); at least one.
std::vector<int> allowed_cpus();

// Best effort: a thread that cannot be pinned runs anywhere.
void pin_this_thread(int cpu);

// Between two looks of a poll loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace egret::base
