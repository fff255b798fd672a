// Memory for a device: how it is aligned and rounded, that it is resident, and on which node.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "temporary_folder.h"
#include "transport/device/pages.h"

using egret::transport::device::fills_huge_pages;
using egret::transport::device::kAnyNode;
using egret::transport::device::kHugePage;
using egret::transport::device::numa_node_of;
using egret::transport::device::Pages;

namespace {

constexpr size_t kPage = 4096;

Pages mapped(size_t bytes, int node = kAnyNode) {
  auto pages = Pages::map(bytes, node);
  REQUIRE(pages);
  return std::move(pages.value());
}

bool is_at_multiple_of(const Pages& pages, size_t unit) {
  return reinterpret_cast<uintptr_t>(pages.data()) % unit == 0;
}

size_t resident_pages(const Pages& pages) {
  std::vector<unsigned char> resident(pages.mapped() / kPage);
  REQUIRE(::mincore(pages.data(), pages.mapped(), resident.data()) == 0);
  return static_cast<size_t>(std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) != 0; }));
}

// The kernel's flags of the mapping that begins there; "hg": to be of huge pages, "ht": of explicit ones.
std::string flags_of(const Pages& pages) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<uintptr_t>(pages.data()) << '-';
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_it = line.starts_with(begin.str());
    if (is_it && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

struct Policy {
  int mode = MPOL_DEFAULT;
  unsigned long nodes = 0;
};
Policy policy_at(const void* address) {
  Policy policy;
  std::vector<unsigned long> nodes(16);
  REQUIRE(::syscall(SYS_get_mempolicy, &policy.mode, nodes.data(), 1024UL, address, MPOL_F_ADDR) == 0);
  policy.nodes = nodes[0];
  return policy;
}

}  // namespace

TEST_CASE("memory that nearly fills pages of 2 MiB consists of such") {
  CHECK(fills_huge_pages(kHugePage));
  CHECK(fills_huge_pages(kHugePage * 4 / 5 + kPage));
  CHECK_FALSE(fills_huge_pages(kHugePage * 4 / 5 - kPage));
  CHECK_FALSE(fills_huge_pages(kHugePage + kPage));
  CHECK(fills_huge_pages(4 * kHugePage + kPage));
  CHECK_FALSE(fills_huge_pages(0));
  for (const size_t bytes : {kHugePage, kHugePage - 64 * kPage, 5 * kHugePage - 64}) {
    CAPTURE(bytes);
    const Pages pages = mapped(bytes);
    CHECK(is_at_multiple_of(pages, kHugePage));
    CHECK(pages.mapped() % kHugePage == 0);
    CHECK(pages.mapped() - bytes < kHugePage);
    const std::string flags = flags_of(pages);
    CHECK((flags.find(" hg ") != std::string::npos || flags.find(" ht ") != std::string::npos));
  }
}

TEST_CASE("smaller memory takes the small pages that it needs") {
  for (const size_t bytes : {size_t{1}, kPage, kHugePage + kPage}) {
    CAPTURE(bytes);
    const Pages pages = mapped(bytes);
    CHECK(is_at_multiple_of(pages, kPage));
    CHECK(pages.mapped() == (bytes + kPage - 1) / kPage * kPage);
    CHECK(flags_of(pages).find(" hg ") == std::string::npos);
  }
}

TEST_CASE("it is zeroed, and resident before anybody uses it") {
  for (const size_t bytes : {3 * kPage, kHugePage}) {
    CAPTURE(bytes);
    const Pages pages = mapped(bytes);
    CHECK(resident_pages(pages) == pages.mapped() / kPage);
    CHECK(
        std::all_of(pages.data(), pages.data() + pages.mapped(), [](std::byte each) { return each == std::byte{0}; }));
  }
}

TEST_CASE("it is of the device's node, as long as that has some") {
  for (const size_t bytes : {kPage, kHugePage}) {
    CAPTURE(bytes);
    const Pages near = mapped(bytes, 0);
    CHECK(policy_at(near.data()).mode == MPOL_PREFERRED);
    CHECK(policy_at(near.data()).nodes == 1);
    CHECK(policy_at(mapped(bytes).data()).mode == MPOL_DEFAULT);
  }
}

TEST_CASE("a node that the host does not have is no obstacle") {
  CHECK(resident_pages(mapped(kHugePage, 900)) == kHugePage / kPage);
  CHECK(resident_pages(mapped(kPage, 5000)) == 1);
}

TEST_CASE("the node of a device, where the kernel knows it") {
  const egret::TemporaryFolder folder;
  CHECK(numa_node_of(folder.path) == kAnyNode);
  std::filesystem::create_directory(folder.at("device"));
  std::ofstream(folder.at("device/numa_node")) << "1\n";
  CHECK(numa_node_of(folder.path) == 1);
  std::ofstream(folder.at("device/numa_node")) << "-1\n";
  CHECK(numa_node_of(folder.path) == kAnyNode);
}
