// How much memory, and how many mappings and descriptors, this process may have.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "base/service/memory_room.h"
#include "temporary_folder.h"

using namespace egret::base;

namespace {

struct Host {
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder.at(path)).parent_path());
    std::ofstream(folder.at(path)) << text;
  }
  MemoryRoom room() const { return memory_room(folder.at("proc"), folder.at("cgroup")); }
  egret::TemporaryFolder folder;
};

}  // namespace

TEST_CASE("a host without limits has all of its memory") {
  const Host host;
  CHECK(host.room().bytes == 0);
  host.write("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
  CHECK(host.room().bytes == 2048 * 1024);
  CHECK(host.room().source == "this host's");
  host.write("proc/self/cgroup", "0::/system.slice/egret-backend.service\n");
  host.write("cgroup/system.slice/egret-backend.service/memory.max", "max\n");
  CHECK(host.room().source == "this host's");
}

TEST_CASE("the least limit of a control group and of those above it counts, in both versions") {
  const Host host;
  host.write("proc/meminfo", "MemTotal:       1048576 kB\n");
  host.write("proc/self/cgroup", "0::/a/b\n");
  host.write("cgroup/a/b/memory.max", "500000000\n");
  CHECK(host.room().bytes == 500'000'000);
  CHECK(host.room().source == "the control group's");
  host.write("cgroup/a/memory.max", "400000000\n");
  CHECK(host.room().bytes == 400'000'000);
  host.write("cgroup/memory.max", "300000000\n");
  CHECK(host.room().bytes == 300'000'000);

  const Host older;
  older.write("proc/meminfo", "MemTotal:       1048576 kB\n");
  older.write("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/1\n");
  older.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(older.room().source == "this host's");
  // In a container: the path is the host's, the limit lies at the root.
  older.write("cgroup/memory/memory.limit_in_bytes", "200000000\n");
  CHECK(older.room().bytes == 200'000'000);
}

TEST_CASE("a limit above the host's memory is none, and odd files are none either") {
  const Host host;
  host.write("proc/meminfo", "MemTotal:       1000 kB\n");
  host.write("proc/self/cgroup", "nonsense\n0:without slash\n0::x\n");
  host.write("cgroup/memory.max", "99999999999\n");
  CHECK(host.room().bytes == 1000 * 1024);
}

TEST_CASE("mappings and descriptors are the kernel's figures") {
  const Host host;
  CHECK(most_mappings(host.folder.at("proc")) == 0);
  host.write("proc/sys/vm/max_map_count", "65530\n");
  CHECK(most_mappings(host.folder.at("proc")) == 65530);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_max != RLIM_INFINITY) CHECK(most_descriptors() == limit.rlim_max);
}
