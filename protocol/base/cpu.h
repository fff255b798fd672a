// The processors a process may use, and what a poll loop tells the one it runs on.
#pragma once

#include <vector>

namespace egret::base {

// The CPUs that this process may run on (its affinity, as a container or unit set it); at least one.
std::vector<int> allowed_cpus();

// Best effort: a thread that cannot be pinned runs anywhere.
void pin_this_thread(int cpu);
// Likewise.
void let_this_thread_run_on(const std::vector<int>& cpus);

// Between two looks of a poll loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks for the cache line of `at`, which another CPU may have, in order to write it. Any address will do.
inline void prefetch_for_write(const void* at) {
#if defined(__x86_64__) || defined(__i386__)
  // What __builtin_prefetch() gives without -mprfchw leaves the line shared, and the first store waits for it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace egret::base
