#include "transport/device/fabric.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "transport/device/cards.h"

namespace egret::transport::device {

using base::Expected;
using base::Status;

namespace {

constexpr uint32_t kMostGids = 256;  // that an error looks through
constexpr size_t kGidsNamed = 8;     // and names
constexpr uint16_t kPkeyOfRoce = 0xffff;
constexpr unsigned kIpv4MappedPrefix = 12;

const char* gid_type_name(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "InfiniBand";
  }
}

std::string text_of(const ibv_gid_entry& entry) {
  std::array<char, INET6_ADDRSTRLEN> address{};
  ::inet_ntop(AF_INET6, entry.gid.raw, address.data(), address.size());
  return fmt::format("{} = {} ({})", entry.gid_index, address.data(), gid_type_name(entry.gid_type));
}

std::string port_name(const rdma_cm_id* id) {
  return fmt::format("{} port {}", ::ibv_get_device_name(id->verbs->device), id->port_num);
}

bool find_gid(const rdma_cm_id* id, uint32_t index, ibv_gid_entry& found) {
  constexpr ibv_gid kNone{};
  return ::ibv_query_gid_ex(id->verbs, id->port_num, index, &found, 0) == 0 &&
         std::memcmp(&found.gid, &kNone, sizeof kNone) != 0;
}

std::string gids_of(const rdma_cm_id* id) {
  std::string list;
  size_t count = 0;
  for (uint32_t index = 0; index < kMostGids; ++index) {
    ibv_gid_entry entry{};
    if (!find_gid(id, index, entry)) continue;
    if (++count <= kGidsNamed) list += (list.empty() ? "" : ", ") + text_of(entry);
  }
  if (count > kGidsNamed) list += fmt::format(" and {} more", count - kGidsNamed);
  return list.empty() ? "none" : list;
}

bool is_ethernet(const rdma_cm_id* id) {
  ibv_port_attr port{};
  return ::ibv_query_port(id->verbs, id->port_num, &port) == 0 && port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

// Whether both are one address of a host; ports do not count.
bool is_same_address(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

std::optional<SourceAddress> address_of_interface(const std::string& name, sa_family_t family) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::optional<SourceAddress> found;
  for (const ifaddrs* each = all; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family || name != each->ifa_name) continue;
    found.emplace();
    std::memcpy(&found->storage, each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  ::freeifaddrs(all);
  return found;
}

Expected<std::optional<SourceAddress>> by_gid(const rdma_cm_id* id, uint32_t index) {
  ibv_gid_entry entry{};
  if (!find_gid(id, index, entry)) {
    return Status::error(fmt::format("there is no gid_index {}: {} has {}", index, port_name(id), gids_of(id)));
  }
  if (!is_ethernet(id)) return std::optional<SourceAddress>();  // all of a port's addresses are of one GID
  auto source = address_of(entry.gid, entry.ndev_ifindex, id->route.addr.dst_addr.sa_family);
  if (source) return source;
  return Status::error(fmt::format("gid_index {} is no {} address, as the backend's is: {} has {}", index,
                                   id->route.addr.dst_addr.sa_family == AF_INET ? "IPv4" : "IPv6", port_name(id),
                                   gids_of(id)));
}

Expected<std::optional<SourceAddress>> by_partition(const rdma_cm_id* id, uint16_t pkey) {
  if (is_ethernet(id)) {
    if (is_same_partition(pkey, kPkeyOfRoce)) return std::optional<SourceAddress>();
    return Status::error(
        fmt::format("there is no pkey {:#06x}: {} is RoCE, and has 0xffff only; a VLAN parts it", pkey, port_name(id)));
  }
  if (is_same_partition(ntohs(id->route.addr.addr.ibaddr.pkey), pkey)) return std::optional<SourceAddress>();
  std::string list;
  for (const auto& each : partition_interfaces("/sys", ::ibv_get_device_name(id->verbs->device))) {
    auto source = address_of_interface(each.name, id->route.addr.dst_addr.sa_family);
    if (source && is_same_partition(each.pkey, pkey)) return source;
    list += fmt::format("{}{} ({:#06x}{})", list.empty() ? "" : ", ", each.name, each.pkey,
                        source ? "" : ", without an address of the backend's kind");
  }
  return Status::error(fmt::format("no IPoIB interface of {} is in partition pkey {:#06x}: there are {}", port_name(id),
                                   pkey, list.empty() ? "none" : list));
}

}  // namespace

std::string set_options(rdma_cm_id* id, const FabricOptions& options) {
  std::string refused;
  const auto set = [&](int option, const char* name, uint8_t value) {
    if (::rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value) == 0) return;
    refused += fmt::format("; {} is not taken: {}", name, std::strerror(errno));
  };
  set(RDMA_OPTION_ID_ACK_TIMEOUT, "ack_timeout", options.ack_timeout);
  if (options.tos) set(RDMA_OPTION_ID_TOS, "tos", *options.tos);
  return refused;
}

Status check_device(const ibv_context* context) {
  const bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  auto why = refusal("/sys", ::ibv_get_device_name(context->device), is_iwarp);
  return why ? Status::error(*why) : Status::ok();
}

Expected<std::optional<SourceAddress>> source_for(const rdma_cm_id* id, const FabricOptions& options) {
  std::optional<SourceAddress> wanted;
  if (options.pkey) {
    auto source = by_partition(id, *options.pkey);
    if (!source) return source;
    wanted = source.value();
  }
  if (options.gid_index) {
    auto source = by_gid(id, *options.gid_index);
    if (!source) return source;
    if (source.value()) wanted = source.value();
  }
  if (wanted && is_same_address(wanted->at(), &id->route.addr.src_addr)) wanted.reset();
  return wanted;
}

Status check_path(const rdma_cm_id* id, const FabricOptions& options) {
  if (!options.gid_index && !options.pkey) return Status::ok();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr made{};
  if (const int error = ::ibv_query_qp(id->qp, &attributes, IBV_QP_AV | IBV_QP_PKEY_INDEX, &made); error != 0) {
    return Status::system_error("ibv_query_qp", error);
  }
  const uint32_t taken = attributes.ah_attr.grh.sgid_index;
  if (options.gid_index && attributes.ah_attr.is_global && taken != *options.gid_index) {
    return Status::error(fmt::format(
        "gid_index is {}, and rdma_cm took {}, of the same address: which type of GID it takes is the host's "
        "cma_roce_mode; {} has {}",
        *options.gid_index, taken, port_name(id), gids_of(id)));
  }
  uint16_t pkey = 0;
  if (options.pkey && ::ibv_query_pkey(id->verbs, id->port_num, attributes.pkey_index, &pkey) == 0 &&
      !is_same_partition(ntohs(pkey), *options.pkey)) {
    return Status::error(fmt::format("pkey is {:#06x}, and rdma_cm took {:#06x}", *options.pkey, ntohs(pkey)));
  }
  return Status::ok();
}

std::string describe_path(const rdma_cm_id* id) {
  std::string text = port_name(id);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr made{};
  constexpr int kWanted = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT;
  if (::ibv_query_qp(id->qp, &attributes, kWanted, &made) != 0) return text;
  const ibv_global_route& route = attributes.ah_attr.grh;
  ibv_gid_entry gid{};
  if (attributes.ah_attr.is_global && find_gid(id, route.sgid_index, gid)) text += ", gid " + text_of(gid);
  text += fmt::format(", mtu {}", 128u << attributes.path_mtu);
  if (attributes.ah_attr.is_global) text += fmt::format(", tos {}", route.traffic_class);
  return text + fmt::format(", ack_timeout {}", attributes.timeout);
}

std::optional<SourceAddress> address_of(const ibv_gid& gid, uint32_t interface, sa_family_t family) {
  in6_addr address{};
  std::memcpy(&address, gid.raw, sizeof address);
  const bool is_mapped = IN6_IS_ADDR_V4MAPPED(&address);
  if (is_mapped != (family == AF_INET)) return {};
  SourceAddress source;
  if (is_mapped) {
    auto& plain = reinterpret_cast<sockaddr_in&>(source.storage);
    plain.sin_family = AF_INET;
    std::memcpy(&plain.sin_addr, gid.raw + kIpv4MappedPrefix, sizeof plain.sin_addr);
  } else {
    auto& plain = reinterpret_cast<sockaddr_in6&>(source.storage);
    plain.sin6_family = AF_INET6;
    plain.sin6_addr = address;
    if (IN6_IS_ADDR_LINKLOCAL(&address)) plain.sin6_scope_id = interface;
  }
  return source;
}

std::vector<PartitionInterface> partition_interfaces(const std::string& sys, const std::string& device) {
  namespace fs = std::filesystem;
  std::vector<PartitionInterface> found;
  std::error_code error;
  for (fs::directory_iterator at(sys + "/class/net", error), end; !error && at != end; at.increment(error)) {
    std::ifstream file(at->path() / "pkey");
    std::string text;
    if (!std::getline(file, text) || !text.starts_with("0x")) continue;
    if (!fs::exists(at->path() / "device" / "infiniband" / device)) continue;
    uint16_t pkey = 0;
    if (std::from_chars(text.data() + 2, text.data() + text.size(), pkey, 16).ec != std::errc{}) continue;
    found.push_back({at->path().filename(), pkey});
  }
  return found;
}

}  // namespace egret::transport::device
