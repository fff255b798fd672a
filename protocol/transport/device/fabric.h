// How a connection uses the fabric: what rdma_cm is told before it connects, by which of this host's addresses it goes
// where the automatic choice is not the wanted one, and what a connected queue pair has of all that.
//
// rdma_cm takes port, GID and partition from the source address; it can be told no GID index and no partition key. So
// source_for() finds the address to which the wanted ones belong, and check_path() looks whether they were taken.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include "base/status.h"
#include "transport/address.h"

namespace egret::transport::device {

// Tells rdma_cm; before addresses are resolved, or before a request to connect is accepted. What it does not take is
// said as the end of a log line: "; ack_timeout is not taken: Invalid argument".
std::string set_options(rdma_cm_id* id, const FabricOptions& options);

struct SourceAddress {
  sockaddr_storage storage{};
  sockaddr* at() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Of an id whose device is known: whether that can serve at all (cards.h).
base::Status check_device(const ibv_context* context);

// Of an id whose address is resolved: from where to connect so that gid_index and pkey are the wanted ones; nothing if
// the present source will do. An error says what the port has.
base::Expected<std::optional<SourceAddress>> source_for(const rdma_cm_id* id, const FabricOptions& options);

// Whether a connected queue pair has the wanted ones.
base::Status check_path(const rdma_cm_id* id, const FabricOptions& options);

// "rxe0 port 1, gid 1 = ::ffff:10.9.0.1 (RoCE v2), mtu 4096, tos 104, ack_timeout 16": what a connected queue pair has.
std::string describe_path(const rdma_cm_id* id);

// --- the parts, for tests

// The address that a RoCE port's GID is made of; nothing if it is not of `family`. `interface`: for a link-local one.
std::optional<SourceAddress> address_of(const ibv_gid& gid, uint32_t interface, sa_family_t family);

// An IPoIB interface of a device.
struct PartitionInterface {
  std::string name;
  uint16_t pkey = 0;
};
std::vector<PartitionInterface> partition_interfaces(const std::string& sys, const std::string& device);

// Two keys name the same partition, whatever their membership bits are.
constexpr bool is_same_partition(uint16_t a, uint16_t b) {
  return (a & 0x7fff) == (b & 0x7fff);
}

}  // namespace egret::transport::device
