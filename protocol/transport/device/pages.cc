#include "transport/device/pages.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <fstream>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace egret::transport::device {

using base::Expected;
using base::Status;

namespace {

constexpr size_t kPage = 4096;
constexpr int kMostNodes = 1024;
constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Before the first page is touched. A kernel or a container that does not allow it leaves the memory where it falls.
void prefer_node(std::byte* at, size_t bytes, int node) {
  if (node < 0 || node >= kMostNodes) return;
  constexpr int kBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kMostNodes / kBits> nodes{};
  nodes[static_cast<size_t>(node / kBits)] = 1UL << (node % kBits);
  (void)::syscall(SYS_mbind, at, bytes, MPOL_PREFERRED, nodes.data(), kMostNodes + 1UL, 0UL);
}

// False: there is no memory for it. Explicit huge pages that turn out to be missing are told so, not by a signal.
bool populate(std::byte* at, size_t bytes, size_t page) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(at, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  for (size_t offset = 0; offset < bytes; offset += page) *static_cast<volatile std::byte*>(at + offset) = std::byte{0};
  return true;
}

std::byte* map_explicit(size_t bytes, int node) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kKind | MAP_HUGETLB, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const data = static_cast<std::byte*>(at);
  prefer_node(data, bytes, node);
  if (populate(data, bytes, kHugePage)) return data;
  ::munmap(at, bytes);
  return nullptr;
}

// At an address that is a multiple of `alignment`.
std::byte* map_aligned(size_t bytes, size_t alignment) {
  const size_t whole = bytes + alignment - kPage;
  void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, kKind, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(at);
  const size_t before = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (before > 0) ::munmap(begin, before);
  if (const size_t behind = whole - before - bytes; behind > 0) ::munmap(begin + before + bytes, behind);
  return begin + before;
}

}  // namespace

bool fills_huge_pages(size_t bytes) {
  return bytes > 0 && round_up(bytes, kHugePage) - bytes <= bytes / 4;
}

int numa_node_of(const std::string& sysfs_folder) {
  std::ifstream file(sysfs_folder + "/device/numa_node");
  int node = kAnyNode;
  return file >> node ? node : kAnyNode;
}

Expected<Pages> Pages::map(size_t bytes, int node) {
  const bool is_large = fills_huge_pages(bytes);
  const size_t whole = round_up(bytes, is_large ? kHugePage : kPage);
  if (is_large) {
    if (std::byte* const data = map_explicit(whole, node); data != nullptr) return Pages(data, whole);
  }
  std::byte* const data = map_aligned(whole, is_large ? kHugePage : kPage);
  if (data == nullptr) return Status::system_error("cannot allocate " + std::to_string(bytes) + " bytes", errno);
  Pages pages(data, whole);
  if (is_large) (void)::madvise(data, whole, MADV_HUGEPAGE);
  prefer_node(data, whole, node);
  if (!populate(data, whole, kPage)) {
    return Status::system_error("cannot allocate " + std::to_string(bytes) + " bytes", errno);
  }
  return pages;
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

}  // namespace egret::transport::device
