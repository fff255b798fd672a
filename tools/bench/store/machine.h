// CPU time, resident memory, and the kinds of pages that it consists of.
#pragma once

#include <cstdint>
#include <string>

namespace egret::bench_store {

// CPU time of the calling thread, in seconds.
double cpu_seconds();

// Calls prepare(), which returns how many ops it has prepared, and work(), which does them, until work() has used
// `seconds` of CPU time or there are no more ops. Returns ns per op of work() alone.
template <typename Prepare, typename Work>
double ns_per_op(double seconds, Prepare prepare, Work work) {
  double taken = 0;
  uint64_t ops = 0;
  while (taken < seconds) {
    const uint64_t ready = prepare();
    if (ready == 0) break;
    const double start = cpu_seconds();
    work();
    taken += cpu_seconds() - start;
    ops += ready;
  }
  return taken / static_cast<double>(ops) * 1e9;
}

// Switches transparent huge pages off for all future mappings of the process. False: the kernel refused.
bool forbid_huge_pages();

// Sums over the mappings of this process, in KiB, from /proc/self/smaps_rollup. All 0 where that does not exist.
struct MemoryMap {
  uint64_t resident = 0;    // pages of hugetlbfs not included
  uint64_t huge_anon = 0;   // AnonHugePages
  uint64_t huge_shmem = 0;  // ShmemPmdMapped
  uint64_t huge_file = 0;   // FilePmdMapped
  uint64_t hugetlb = 0;     // Private_Hugetlb and Shared_Hugetlb

  static MemoryMap now();
  MemoryMap operator-(const MemoryMap& before) const;
  // "1148 MiB resident, 1146 MiB of them in 2 MiB pages (AnonHugePages 1146)"
  std::string to_string() const;
};

// An anonymous mapping, fully touched, in huge pages if the process may have them: the memory of a control.
class Region {
 public:
  explicit Region(uint64_t bytes);  // ends the process when there is no memory
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint64_t* words() const { return words_; }

 private:
  uint64_t bytes_;
  uint64_t* words_;
};

}  // namespace egret::bench_store
