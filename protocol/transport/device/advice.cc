#include "transport/device/advice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/core.h>

#include "transport/device/cards.h"
#include "transport/device/fabric.h"

namespace egret::transport::device {

using base::Findings;
using base::Verdict;

namespace {

namespace fs = std::filesystem;

constexpr unsigned long kMtuForFour = 4200;  // of Ethernet: 4096 bytes and the headers of RoCE v2
constexpr unsigned long kMtuForTwo = 2200;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

fs::path folder_of(const std::string& sys, const PortPlace& port) {
  return fs::path(sys) / "class/infiniband" / port.device / "ports" / port.number;
}

std::string name_of(const PortPlace& port) {
  return port.device + " port " + port.number;
}

// The network interfaces whose addresses are a port's GIDs.
std::set<std::string> interfaces_of(const std::string& sys, const PortPlace& port) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder_of(sys, port) / "gid_attrs/ndevs", error), end; !error && at != end;
       at.increment(error)) {
    if (const std::string name = first_line(at->path()); !name.empty()) names.insert(name);
  }
  return names;
}

void check_mtu(const std::string& sys, const PortPlace& port, const std::string& interface, Findings& findings) {
  const std::string text = first_line(fs::path(sys) / "class/net" / interface / "mtu");
  const unsigned long mtu = std::strtoul(text.c_str(), nullptr, 10);
  if (mtu == 0) return;
  const unsigned of_pairs = mtu >= kMtuForFour ? 4096 : mtu >= kMtuForTwo ? 2048 : 1024;
  const std::string what = fmt::format("{} of {}, so queue pairs have {}", mtu, interface, of_pairs);
  const std::string hint = of_pairs == 4096 ? ""
                                            : fmt::format(
                                                  "a slot of 4KiB takes {} packets: if all switches between "
                                                  "carry it, ip link set {} mtu 9000",
                                                  4096 / of_pairs, interface);
  findings.add({Verdict::kOk, name_of(port) + " MTU", what, hint});
}

}  // namespace

void check_cards(const std::string& sys, const std::vector<std::string>& devices, Findings& findings) {
  const auto can_serve = [&](const std::string& device) { return !refusal(sys, device, false); };
  const bool any = std::ranges::any_of(devices, can_serve);
  for (const std::string& device : devices) {
    const Card* const card = card_of(sys, device);
    const std::string identity = identity_of(sys, device);
    if (const auto why = refusal(sys, device, false); why) {
      findings.add({any ? Verdict::kWarning : Verdict::kFailure, device, *why,
                    "use another device, or its RoCE mode if it has one (docs/operate/rdma.md, Cards)"});
    } else if (card == nullptr) {
      findings.add({Verdict::kOk, device, identity + ": nothing is known of it",
                    "run egret-bench verbs between two hosts before it serves"});
    } else {
      findings.ok(device, fmt::format("{}: {}: {}{}", identity, card->cards, card->known,
                                      card->checked == Checked::kGuest ? "" : " (never run by Egret's authors)"));
    }
  }
}

void check_network(const std::string& sys, const PortPlace& port, Findings& findings) {
  if (port.is_ethernet) {
    for (const std::string& interface : interfaces_of(sys, port)) check_mtu(sys, port, interface, findings);
    return;
  }
  std::string list;
  for (const auto& each : partition_interfaces(sys, port.device)) {
    list += fmt::format("{}{} (pkey {:#06x})", list.empty() ? "" : ", ", each.name, each.pkey);
  }
  if (!list.empty()) return findings.ok(name_of(port) + " IPoIB", list);
  findings.warn(name_of(port) + " IPoIB", "no interface: rdma: addresses are IP addresses, and this port has none",
                "modprobe ib_ipoib, and give its interface an address (ip addr add)");
}

void check_traffic_class(const std::string& sys, const PortPlace& port, std::optional<uint8_t> tos,
                         Findings& findings) {
  if (!port.is_ethernet) return;
  const std::string subject = name_of(port) + " traffic class";
  const auto dscp = [](unsigned long byte) { return fmt::format("tos {} (DSCP {})", byte, byte / 4); };
  if (tos) return findings.ok(subject, dscp(*tos));
  const fs::path own = fs::path(sys) / "kernel/config/rdma_cm" / port.device / "ports" / port.number;
  const unsigned long of_host = std::strtoul(first_line(own / "default_roce_tos").c_str(), nullptr, 10);
  if (of_host != 0) return findings.ok(subject, "this host's default (cma_roce_tos), " + dscp(of_host));
  findings.add({Verdict::kOk, subject, "none is set, so packets travel in the fabric's default class",
                "if the fabric has a lossless class for RoCE, set tos to it (104 for DSCP 26)"});
}

}  // namespace egret::transport::device
