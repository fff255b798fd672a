// check_rdma reads sysfs rather than ask libibverbs, which shows nothing at all when one link of the chain is missing:
//
//   adapter's driver ─▶ /sys/class/infiniband/DEVICE/ports/N   state, link layer, GIDs
//   ib_uverbs        ─▶ /sys/class/infiniband_verbs/uverbsN    ibdev: DEVICE
//   udev, container  ─▶ /dev/infiniband/uverbsN, rdma_cm       what this process may open
//   rdma-core        ─▶ libibverbs' driver for it              ibv_get_device_list
#include "transport/doctor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/service/listening.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "transport/address.h"
#include "transport/device/advice.h"
#include "transport/device/cards.h"
#include "transport/device/pages.h"
#include "transport/verbs/queue_sizes.h"
#include "transport/verbs_common.h"

namespace egret::transport {

using base::Finding;
using base::Findings;
using base::Verdict;

namespace {

namespace fs = std::filesystem;

constexpr size_t kEmptyGids = 64;  // places in a row after which no further one is looked at: a table may have 1,024
constexpr size_t kGidsNamed = 6;   // of a port; a host with many VLANs has hundreds
constexpr unsigned kCapIpcLock = 14;
constexpr const char* kRdma = "rdma:";
constexpr const char* kTcp = "tcp:";
constexpr const char* kShm = "shm:";

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {};
  return std::string(base::trimmed(line));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename());
  }
  const auto by_number = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  };
  std::ranges::sort(names, by_number);
  return names;
}

// --- ports and GIDs

struct Gids {
  std::vector<std::string> named;
  size_t count = 0;
  bool any_v2 = false;
  bool any_routable = false;  // something that is no link-local address
};

struct Port {
  std::string name;  // "rxe0 port 1"
  std::string path;  // of its folder in sysfs
  std::string state;
  bool is_active = false;
  bool is_ethernet = false;
  bool is_iwarp = false;
  device::PortPlace place{};
  Gids gids{};  // where it is active
};

Gids gids_of(const Port& port) {
  Gids gids;
  const size_t places = names_in(port.path + "/gids").size();
  for (size_t number = 0, empty = 0; number < places && empty < kEmptyGids; ++number) {
    const std::string index = std::to_string(number);
    const std::string raw = first_line(port.path + "/gids/" + index).value_or("");
    in6_addr address{};
    if (::inet_pton(AF_INET6, raw.c_str(), &address) != 1 || IN6_IS_ADDR_UNSPECIFIED(&address)) {
      ++empty;
      continue;
    }
    empty = 0;
    // Of a GID that has no interface the type cannot be read: it is of no use, either.
    const std::string type = first_line(port.path + "/gid_attrs/types/" + index).value_or("");
    if (port.is_ethernet && type.empty()) continue;
    const bool is_v2 = type == "RoCE v2";
    const std::string interface = first_line(port.path + "/gid_attrs/ndevs/" + index).value_or("");
    ++gids.count;
    gids.any_v2 |= is_v2;
    gids.any_routable |= !IN6_IS_ADDR_LINKLOCAL(&address);
    if (gids.named.size() == kGidsNamed) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    const char* const of_ethernet = port.is_iwarp ? "iWARP" : is_v2 ? "RoCE v2" : "RoCE v1";
    const std::string kind = port.is_ethernet ? of_ethernet : "InfiniBand";
    const char* const comma = interface.empty() ? "" : ", ";
    gids.named.push_back(fmt::format("{} = {} ({}{}{})", index, text.data(), kind, comma, interface));
  }
  return gids;
}

std::vector<Port> ports_of(const HostFiles& host, const std::string& device) {
  std::vector<Port> ports;
  const std::string folder = host.sys + "/class/infiniband/" + device + "/ports";
  for (const std::string& number : names_in(folder)) {
    Port port{
        .name = fmt::format("{} port {}", device, number), .path = fmt::format("{}/{}", folder, number), .state = {}};
    port.state = first_line(port.path + "/state").value_or("unknown");
    port.is_active = port.state.find("ACTIVE") != std::string::npos;
    port.is_ethernet = first_line(port.path + "/link_layer").value_or("") == "Ethernet";
    port.is_iwarp = device::is_iwarp(host.sys, device);
    port.place = {.device = device, .number = number, .is_ethernet = port.is_ethernet};
    if (port.is_active) port.gids = gids_of(port);
    ports.push_back(port);
  }
  return ports;
}

void check_port(const Port& port, bool another_is_active, Findings& findings) {
  const char* const link = !port.is_ethernet ? "InfiniBand" : port.is_iwarp ? "Ethernet (iWARP)" : "Ethernet (RoCE)";
  const std::string what = "state " + port.state + ", " + link;
  if (port.is_active) return findings.ok(port.name, what);
  const std::string advice = port.is_ethernet ? "bring its network interface up (rdma link show; ip link set IFACE up)"
                                              : "check the cable and that a subnet manager runs (ibstat, opensm)";
  findings.add({another_is_active ? Verdict::kWarning : Verdict::kFailure, port.name, what, advice});
}

void check_gids(const Port& port, bool another_has_some, Findings& findings) {
  const Gids& gids = port.gids;
  const std::string subject = port.name + " GIDs";
  if (gids.count == 0) {
    const std::string advice = port.is_ethernet ? "give its network interface an IP address (ip addr add)"
                                                : "check that a subnet manager runs (ibstat, opensm)";
    return findings.add({another_has_some ? Verdict::kWarning : Verdict::kFailure, subject, "none", advice});
  }
  std::string list;
  for (const std::string& gid : gids.named) list += (list.empty() ? "" : ", ") + gid;
  if (gids.count > gids.named.size()) list += " and " + std::to_string(gids.count - gids.named.size()) + " more";
  if (port.is_ethernet && !gids.any_routable) {
    return findings.warn(subject, list + ": link-local addresses only",
                         "give the network interface an IP address, which rdma: addresses then name (ip addr add)");
  }
  if (port.is_ethernet && !port.is_iwarp && !gids.any_v2) {
    return findings.warn(subject, list + ": RoCE v1 only, which no router passes on",
                         "enable RoCE v2 on the adapter (cma_roce_mode -d DEVICE -p PORT -m 2)");
  }
  findings.ok(subject, list);
}

// --- device files

// The one thing to do when the kernel has a device and this process cannot open its file.
std::string device_advice(const std::string& file) {
  return "container: docker run --device " + file +
         " --device /dev/infiniband/rdma_cm; systemd unit: no PrivateDevices, " +
         "DeviceAllow=char-infiniband_verbs rw and DeviceAllow=/dev/infiniband/rdma_cm rw";
}

// `file` as everybody knows it, under /dev; opened where this host keeps it.
bool check_device_file(const HostFiles& host, const std::string& file, const std::string& what, Findings& findings) {
  const std::string known = "/dev/" + file;
  const base::UniqueFd opened(::open((host.dev + "/" + file).c_str(), O_RDWR | O_CLOEXEC));
  const int error = errno;
  if (opened.is_open()) {
    findings.ok(known, "can be opened, for " + what);
    return true;
  }
  if (error == ENOENT) {
    findings.fail(known, "missing, though the kernel has " + what, device_advice(known));
  } else {
    findings.fail(known,
                  "uid " + std::to_string(::geteuid()) + " may not open it, for " + what + ": " + std::strerror(error),
                  "let this user read and write it (udev rule, or its group); " + device_advice(known));
  }
  return false;
}

bool check_device(const HostFiles& host, const std::string& device, Findings& findings) {
  const std::string verbs = host.sys + "/class/infiniband_verbs";
  for (const std::string& name : names_in(verbs)) {
    if (first_line(fmt::format("{}/{}/ibdev", verbs, name)).value_or("") != device) continue;
    return check_device_file(host, "infiniband/" + name, device, findings);
  }
  findings.fail(device, "programs cannot reach it: it has no entry in /sys/class/infiniband_verbs",
                "modprobe ib_uverbs");
  return false;
}

// Whether a device, and rdma_cm, can be opened. A container sees all of the host's devices in /sys, and may well have
// been given one of them.
bool check_device_files(const HostFiles& host, const std::vector<std::string>& devices, Findings& findings) {
  Findings found;
  bool any = false;
  for (const std::string& device : devices) any |= check_device(host, device, found);
  for (Finding finding : found.all()) {
    if (any && finding.verdict == Verdict::kFailure) finding.verdict = Verdict::kWarning;
    findings.add(std::move(finding));
  }
  if (fs::exists(host.sys + "/class/misc/rdma_cm") || fs::exists(host.dev + "/infiniband/rdma_cm")) {
    return check_device_file(host, "infiniband/rdma_cm", "setting up connections", findings) && any;
  }
  findings.fail("/dev/infiniband/rdma_cm", "the kernel's module for setting up connections is not loaded",
                "modprobe rdma_ucm");
  return false;
}

// --- the library, memory

void check_library(const VerbsLibrary& library, bool files_are_open, Findings& findings) {
  if (library.devices > 0) {
    findings.ok("libibverbs",
                "has a driver for " + std::to_string(library.devices) + " device" + (library.devices == 1 ? "" : "s"));
  } else if (files_are_open) {
    findings.fail("libibverbs", "has no driver for any device here", "apt-get install ibverbs-providers");
  } else {
    findings.fail("libibverbs", "sees no device", "first see to the device files above");
  }
  switch (library.fork) {
    case VerbsLibrary::Fork::kUnneeded:
      return findings.ok("fork safety", "the kernel copies pinned pages when a process forks");
    case VerbsLibrary::Fork::kEnabled:
      return findings.ok("fork safety", "pinned pages are kept from children (ibv_fork_init)");
    case VerbsLibrary::Fork::kDisabled:
      return findings.warn("fork safety", "a process that forks may lose pinned pages, and ibv_fork_init failed",
                           "use a kernel of 5.12 or later, and let nothing loaded into this process fork");
  }
}

uint64_t slots_bytes_of(const RdmaNeeds& needs) {
  return needs.slots_bytes != 0 ? needs.slots_bytes : needs.sessions * needs.session_bytes;
}

void check_memlock(const PinLimit& limit, const RdmaNeeds& needs, Findings& findings) {
  const uint64_t of_session = needs.session_bytes + needs.queue_bytes;
  const uint64_t needed = slots_bytes_of(needs) + needs.sessions * needs.queue_bytes;
  const std::string queues =
      needs.queue_bytes == 0 ? "" : ", and " + base::size_text(needs.queue_bytes) + " of queues for each";
  constexpr uint64_t kMiB = 1 << 20;
  const std::string wanted =
      std::to_string((needed + kMiB - 1) / kMiB) + "MiB may be needed: " + needs.arithmetic + queues;
  if (limit.by_capability) return findings.ok("memlock", "no limit holds (CAP_IPC_LOCK); " + wanted);
  if (limit.bytes == PinLimit::kUnlimited) return findings.ok("memlock", "no limit; " + wanted);
  const std::string what = base::size_text(limit.bytes) + " may be pinned, " + wanted;
  if (limit.bytes >= needed) return findings.ok("memlock", what);
  const std::string advice =
      "systemd: LimitMEMLOCK=infinity; docker: --ulimit memlock=-1 --cap-add IPC_LOCK; shell: ulimit -l unlimited";
  if (limit.bytes < of_session) return findings.fail("memlock", what + "; not one session has room", advice);
  findings.warn("memlock", what + "; there is room for " + std::to_string(limit.bytes / of_session) + " sessions",
                advice);
}

void check_huge_pages(const HostFiles& host, const RdmaNeeds& needs, Findings& findings) {
  const uint64_t half = needs.session_bytes / 2;  // the larger of a session's memories is about half of it
  if (!device::fills_huge_pages(half)) {
    return findings.ok("huge pages",
                       "not used: a session's memories, of about " + base::size_text(half) + ", fill none");
  }
  const std::string folder = host.sys + "/kernel/mm/hugepages/hugepages-2048kB/";
  const uint64_t free = std::strtoull(first_line(folder + "free_hugepages").value_or("0").c_str(), nullptr, 10);
  const uint64_t needed = slots_bytes_of(needs) / device::kHugePage + needs.sessions;
  const std::string what = std::to_string(free) + " of 2MiB are free, " + std::to_string(needed) + " may be used";
  if (free >= needed) return findings.ok("huge pages", what);
  findings.warn("huge pages", what + ": the rest is small ones, which cost the adapter more",
                "sysctl vm.nr_hugepages=" + std::to_string(needed));
}

void check_devices(const HostFiles& host, const VerbsLibrary& library, const std::vector<std::string>& devices,
                   const RdmaNeeds& needs, Findings& findings) {
  device::check_cards(host.sys, devices, findings);
  std::vector<Port> ports;
  for (const std::string& device : devices) {
    const std::vector<Port> its = ports_of(host, device);
    ports.insert(ports.end(), its.begin(), its.end());
  }
  const bool any_active = std::ranges::any_of(ports, &Port::is_active);
  const bool any_gids = std::ranges::any_of(ports, [](const Port& port) { return port.gids.count > 0; });
  for (const Port& port : ports) {
    check_port(port, any_active, findings);
    if (!port.is_active) continue;
    check_gids(port, any_gids, findings);
    device::check_network(host.sys, port.place, findings);
    if (needs.connects) device::check_traffic_class(host.sys, port.place, needs.tos, findings);
  }
  if (ports.empty()) findings.fail("RDMA", "no device has a port", "see the kernel's log (dmesg) for its driver");
  const bool files_are_open = check_device_files(host, devices, findings);
  check_library(library, files_are_open, findings);
}

}  // namespace

uint64_t client_queue_bytes(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  return queue_bytes(client_sends_for(lanes, queue_pairs, window), receives_for(lanes, queue_pairs, window),
                     queue_pairs);
}

uint64_t server_queue_bytes(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  return queue_bytes(server_sends_for(lanes, queue_pairs, window), receives_for(lanes, queue_pairs, window),
                     queue_pairs);
}

bool is_rdma(const std::string& address) {
  return alternatives_of(address).front().starts_with(kRdma);
}

bool is_tcp(const std::string& address) {
  return alternatives_of(address).back().starts_with(kTcp);
}

bool is_shm(const std::string& address) {
  return address.starts_with(kShm);
}

bool has_fallback(const std::string& address) {
  return alternatives_of(address).size() > 1;
}

VerbsLibrary ask_verbs_library() {
  VerbsLibrary library;
  int count = 0;
  if (ibv_device** devices = ::ibv_get_device_list(&count); devices != nullptr) {
    library.devices = count;
    ::ibv_free_device_list(devices);
  }
  verbs::make_fork_safe();  // as it is done before the first session
  const ibv_fork_status status = ::ibv_is_fork_initialized();
  library.fork = status == IBV_FORK_UNNEEDED  ? VerbsLibrary::Fork::kUnneeded
                 : status == IBV_FORK_ENABLED ? VerbsLibrary::Fork::kEnabled
                                              : VerbsLibrary::Fork::kDisabled;
  return library;
}

PinLimit pin_limit(const HostFiles& host) {
  rlimit limit{};
  PinLimit found;
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) found.bytes = limit.rlim_cur;
  std::ifstream status(host.proc + "/self/status");
  uint64_t capabilities = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) capabilities = std::strtoull(line.c_str() + std::strlen("CapEff:"), nullptr, 16);
  }
  // In a user namespace of its own a process may have the capability, and the kernel asks for the host's.
  std::ifstream map(host.proc + "/self/uid_map");
  uint64_t inside = 1;
  uint64_t outside = 1;
  uint64_t count = 0;
  map >> inside >> outside >> count;
  const bool is_host = inside == 0 && outside == 0 && count >= 0xffff'ffff;
  found.by_capability = is_host && (capabilities >> kCapIpcLock & 1) != 0;
  return found;
}

void check_rdma(const HostFiles& host, const VerbsLibrary& library, const PinLimit& limit, const RdmaNeeds& needs,
                Findings& findings) {
  const std::vector<std::string> devices = names_in(host.sys + "/class/infiniband");
  if (!needs.is_configured && devices.empty()) {
    return findings.ok("RDMA", "no device; none is needed, as no rdma: address is configured");
  }
  Findings found;
  if (devices.empty()) {
    found.fail("RDMA", "no device in /sys/class/infiniband",
               "load the adapter's driver (lspci; dmesg); without one, for a trial: modprobe rdma_rxe, rdma link add "
               "rxe0 type rxe netdev IFACE");
  } else {
    check_devices(host, library, devices, needs, found);
  }
  if (needs.is_configured) {
    check_memlock(limit, needs, found);
    check_huge_pages(host, needs, found);
  }
  for (Finding finding : found.all()) {
    if (!needs.is_configured && finding.verdict != Verdict::kOk) {
      finding.verdict = Verdict::kOk;
      finding.what += " (not needed: no rdma: address is configured)";
    }
    if (!needs.is_configured) finding.advice.clear();
    if (needs.has_fallback && finding.verdict == Verdict::kFailure) {
      finding.verdict = Verdict::kWarning;
      finding.what += " (sessions go over TCP meanwhile: rdma+tcp)";
    }
    findings.add(std::move(finding));
  }
}

void check_rdma(const RdmaNeeds& needs, Findings& findings) {
  const HostFiles host;
  check_rdma(host, ask_verbs_library(), pin_limit(host), needs, findings);
}

// --- listening

namespace {

std::string listen_advice(int error) {
  switch (error) {
    case EADDRINUSE:
      return "well if this daemon is already running; else stop whoever listens there, or choose another port";
    case EADDRNOTAVAIL:
      return "no interface of this host has that address: name one that has (ip addr), or rdma:*:PORT";
    case ENODEV:
      return "no RDMA device belongs to the interface with that address: name one of another (rdma link show), or "
             "rdma:*:PORT";
    default:
      return "see what is said of devices and /dev/infiniband above";
  }
}

void check_rdma_listen(const std::string& address, Findings& findings) {
  const std::string subject = "listen " + address;
  auto place = verbs::parse_host_port(address.substr(std::strlen(kRdma)));
  if (!place) return findings.fail(subject, place.message(), "correct the address");
  auto resolved = verbs::resolve(place.value(), verbs::Resolve::kListen);
  if (!resolved) return findings.fail(subject, resolved.message(), "name an address of this host, or rdma:*:PORT");
  auto channel = verbs::make_event_channel();
  if (!channel) return findings.fail(subject, "not possible without /dev/infiniband/rdma_cm", listen_advice(0));
  rdma_cm_id* id = nullptr;
  if (::rdma_create_id(channel.value().get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    return findings.fail(subject, std::string("rdma_create_id: ") + std::strerror(errno), listen_advice(errno));
  }
  const verbs::CmId owned(id);
  if (::rdma_bind_addr(id, resolved.value()->ai_addr) == 0 && ::rdma_listen(id, 1) == 0) {
    return findings.ok(subject, "can be listened on");
  }
  const int error = errno;
  findings.add({error == EADDRINUSE ? Verdict::kWarning : Verdict::kFailure, subject, std::strerror(error),
                listen_advice(error)});
}

void check_tcp_listen(const std::string& address, Findings& findings) {
  const std::string subject = "listen " + address;
  auto place = base::parse_host_port(address.substr(std::strlen(kTcp)));
  if (!place) return findings.fail(subject, "expected tcp:HOST:PORT", "correct the address");
  auto resolved = base::resolve_to_listen(place->host, place->port, subject);
  if (!resolved) return findings.fail(subject, resolved.message(), "name an address of this host, or tcp:*:PORT");
  int error = 0;
  bool any = false;
  for (const addrinfo* at = resolved.value().get(); at != nullptr; at = at->ai_next) {
    if (base::listen_at(*at, 1).is_open()) {
      any = true;
    } else if (!base::is_absent(errno) || error == 0) {
      error = errno;
    }
  }
  if (any && (error == 0 || base::is_absent(error))) return findings.ok(subject, "can be listened on");
  findings.add(
      {error == EADDRINUSE ? Verdict::kWarning : Verdict::kFailure, subject, std::strerror(error),
       base::is_absent(error) ? "name an address of this host (ip addr), or tcp:*:PORT" : listen_advice(error)});
}

}  // namespace

void check_listen(const std::string& address, Findings& findings) {
  if (has_fallback(address)) {
    Findings of_rdma;
    check_rdma_listen(alternatives_of(address).front(), of_rdma);
    for (Finding finding : of_rdma.all()) {
      if (finding.verdict == Verdict::kFailure) {
        finding.verdict = Verdict::kWarning;
        finding.what += "; until it can be had, proxies come by TCP";
      }
      findings.add(std::move(finding));
    }
    return check_tcp_listen(alternatives_of(address).back(), findings);
  }
  if (is_rdma(address)) return check_rdma_listen(address, findings);
  if (is_tcp(address)) return check_tcp_listen(address, findings);
  base::check_socket_path("listen " + address, address.substr(std::strlen(kShm)), SOCK_SEQPACKET, findings);
}

}  // namespace egret::transport
