#include "bench_store/machine.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include <sys/mman.h>
#include <sys/prctl.h>

namespace egret::bench_store {
namespace {

constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kPage = 4096;

}  // namespace

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

bool forbid_huge_pages() {
  return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

MemoryMap MemoryMap::now() {
  MemoryMap map;
  const std::array<std::pair<const char*, uint64_t*>, 6> fields{{{"Rss:", &map.resident},
                                                                 {"AnonHugePages:", &map.huge_anon},
                                                                 {"ShmemPmdMapped:", &map.huge_shmem},
                                                                 {"FilePmdMapped:", &map.huge_file},
                                                                 {"Private_Hugetlb:", &map.hugetlb},
                                                                 {"Shared_Hugetlb:", &map.hugetlb}}};
  std::ifstream file("/proc/self/smaps_rollup");
  std::string line;
  std::getline(file, line);  // the addresses
  std::string name;
  uint64_t kib = 0;
  while (file >> name >> kib >> line) {  // "Rss:   1234 kB"
    for (const auto& [field, sum] : fields) {
      if (name == field) *sum += kib;
    }
  }
  return map;
}

MemoryMap MemoryMap::operator-(const MemoryMap& before) const {
  const auto less = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
  return {less(resident, before.resident), less(huge_anon, before.huge_anon), less(huge_shmem, before.huge_shmem),
          less(huge_file, before.huge_file), less(hugetlb, before.hugetlb)};
}

std::string MemoryMap::to_string() const {
  const auto mib = [](uint64_t kib) { return std::to_string(kib >> 10); };
  return mib(resident + hugetlb) + " MiB resident, " + mib(huge_anon + huge_shmem + huge_file + hugetlb) +
         " MiB of them in 2 MiB pages (AnonHugePages " + mib(huge_anon) + ", ShmemPmdMapped " + mib(huge_shmem) +
         ", FilePmdMapped " + mib(huge_file) + ", hugetlb " + mib(hugetlb) + ")";
}

Region::Region(uint64_t bytes) : bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
  void* mapping = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    std::perror("store-bench: no memory for the control");
    std::exit(1);
  }
  (void)madvise(mapping, bytes_, MADV_HUGEPAGE);  // refused: small pages, which MemoryMap tells
  words_ = static_cast<uint64_t*>(mapping);
  for (uint64_t at = 0; at < bytes_; at += kPage) words_[at / sizeof(uint64_t)] = at;
}

Region::~Region() {
  munmap(words_, bytes_);
}

}  // namespace egret::bench_store
