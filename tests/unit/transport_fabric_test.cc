// Which source address a GID index and a partition key stand for.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>

#include "temporary_folder.h"
#include "transport/device/fabric.h"

using namespace egret::transport::device;

namespace {

ibv_gid gid_of(const char* text) {
  ibv_gid gid{};
  REQUIRE(::inet_pton(AF_INET6, text, gid.raw) == 1);
  return gid;
}

void write(const egret::TemporaryFolder& folder, const std::string& name, const std::string& line) {
  const std::filesystem::path file = folder.at(name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << line << "\n";
}

}  // namespace

TEST_CASE("a GID that an IPv4 address made is that address") {
  auto source = address_of(gid_of("::ffff:10.9.0.7"), 4, AF_INET);
  REQUIRE(source);
  sockaddr_in address{};
  std::memcpy(&address, source->at(), sizeof address);
  CHECK(address.sin_family == AF_INET);
  CHECK(address.sin_addr.s_addr == ::inet_addr("10.9.0.7"));
  CHECK(address.sin_port == 0);
}

TEST_CASE("others are IPv6 addresses; a link-local one is of its interface") {
  for (const bool is_link_local : {false, true}) {
    const char* const text = is_link_local ? "fe80::5054:ff:fe09:1" : "fd00:9::1";
    CAPTURE(text);
    auto source = address_of(gid_of(text), 4, AF_INET6);
    REQUIRE(source);
    sockaddr_in6 address{};
    std::memcpy(&address, source->at(), sizeof address);
    CHECK(address.sin6_family == AF_INET6);
    CHECK(std::memcmp(&address.sin6_addr, gid_of(text).raw, sizeof address.sin6_addr) == 0);
    CHECK(address.sin6_scope_id == (is_link_local ? 4 : 0));
  }
}

TEST_CASE("a GID of the other kind of address leads nowhere") {
  CHECK_FALSE(address_of(gid_of("::ffff:10.9.0.7"), 4, AF_INET6));
  CHECK_FALSE(address_of(gid_of("fd00:9::1"), 4, AF_INET));
}

TEST_CASE("the IPoIB interfaces of a device, with their partitions") {
  const egret::TemporaryFolder folder;
  write(folder, "class/net/eth0/mtu", "1500");
  write(folder, "class/net/ib0/pkey", "0xffff");
  write(folder, "class/net/ib0/device/infiniband/mlx5_0/node_type", "1: CA");
  write(folder, "class/net/ib0.8001/pkey", "0x8001");
  write(folder, "class/net/ib0.8001/device/infiniband/mlx5_0/node_type", "1: CA");
  write(folder, "class/net/ib1/pkey", "0x8001");
  write(folder, "class/net/ib1/device/infiniband/mlx5_1/node_type", "1: CA");
  const auto found = partition_interfaces(folder.path, "mlx5_0");
  REQUIRE(found.size() == 2);
  const auto& child = found[found[0].name == "ib0" ? 1 : 0];
  CHECK(child.name == "ib0.8001");
  CHECK(child.pkey == 0x8001);
  CHECK(partition_interfaces(folder.path, "mlx5_1").size() == 1);
  CHECK(partition_interfaces(folder.path, "mlx5_9").empty());
}

TEST_CASE("a partition is the same for full and for limited members") {
  CHECK(is_same_partition(0x8001, 0x0001));
  CHECK_FALSE(is_same_partition(0x8001, 0x8002));
}
