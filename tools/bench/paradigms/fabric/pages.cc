#include "bench_paradigms/fabric/pages.h"

#include <atomic>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <sys/mman.h>

namespace egret::bench_paradigms {

namespace {

std::atomic<uint64_t> g_wanted{0};
std::atomic<uint64_t> g_given{0};

constexpr std::align_val_t kSmallPage{4096};
constexpr int kHugeFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_HUGETLB;

}  // namespace

Pages::Pages(size_t bytes, bool wants_huge) : size_(bytes) {
  if (wants_huge && bytes >= kHugePage / 2) {
    const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    g_wanted += bytes;
    void* const huge = mmap(nullptr, whole, PROT_READ | PROT_WRITE, kHugeFlags, -1, 0);
    if (huge != MAP_FAILED) {
      g_given += bytes;
      data_ = static_cast<std::byte*>(huge);
      mapped_ = whole;
      return;
    }
  }
  data_ = static_cast<std::byte*>(::operator new(bytes, kSmallPage, std::nothrow));
  if (data_ != nullptr) std::memset(data_, 0, bytes);  // it is all there before the first op
}

Pages::~Pages() {
  if (mapped_ > 0) {
    munmap(data_, mapped_);
  } else {
    ::operator delete(data_, kSmallPage);
  }
}

HugePages huge_pages() {
  return {g_wanted.load(), g_given.load()};
}

std::string to_line(const HugePages& pages) {
  constexpr double kMiB = 1 << 20;
  if (pages.wanted == 0) return {};
  std::string line = fmt::format("huge pages: {:.1f} of {:.1f} MiB", static_cast<double>(pages.given) / kMiB,
                                 static_cast<double>(pages.wanted) / kMiB);
  if (pages.given < pages.wanted)
    line += "; the kernel has no more, the rest is in small pages (reserve some: sysctl vm.nr_hugepages)";
  return line;
}

}  // namespace egret::bench_paradigms
