// The CPUs that a process may use, and hints that a poll loop gives to its CPU.
#pragma once

#include <vector>

namespace egret::base {

// The CPUs that this process may run on (its affinity, which a container or unit may restrict); at least one.
std::vector<int> allowed_cpus();

// Best effort: if pinning fails, the thread runs anywhere.
void pin_this_thread(int cpu);
// Best effort, too.
void let_this_thread_run_on(const std::vector<int>& cpus);

// A pause between two polls.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Prefetches the cache line of `at` for writing; another CPU may own it. The address need not be valid.
inline void prefetch_for_write(const void* at) {
#if defined(__x86_64__) || defined(__i386__)
  // Without -mprfchw, __builtin_prefetch() fetches the line as shared, and the first store would wait for ownership.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace egret::base
