// What the doctor says of a host's cards and of the network that their ports are on. What serves, only slower than it
// could, is no warning but a hint: an "ok" with something to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/service/doctor.h"

namespace egret::transport::device {

// A finding for each: which card it is, and what is known of it. One that cannot serve is a failure, unless another can.
void check_cards(const std::string& sys, const std::vector<std::string>& devices, base::Findings& findings);

struct PortPlace {
  std::string device;
  std::string number;
  bool is_ethernet = true;
};

// The MTU of the interfaces below a port; IPoIB on InfiniBand.
void check_network(const std::string& sys, const PortPlace& port, base::Findings& findings);

// The traffic class of RoCE packets, which whoever connects chooses. `tos`: the option, if it is set.
void check_traffic_class(const std::string& sys, const PortPlace& port, std::optional<uint8_t> tos,
                         base::Findings& findings);

}  // namespace egret::transport::device
