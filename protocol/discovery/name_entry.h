// An entry of the option `backends` that is a name to be resolved, not an address:
//
//   dns+TRANSPORT:NAME:PORT [weight=N]   each A and AAAA record of NAME is a member
//   srv+TRANSPORT:NAME [weight=N]        each SRV record of NAME is a member
//
// TRANSPORT is rdma, tcp or rdma+tcp: the members are reached by it.
//
// Thread: any; values without state of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace egret::discovery {

enum class NameKind { kAddresses, kServices };

struct NameEntry {
  NameKind kind = NameKind::kAddresses;
  std::string transport = "rdma";  // of its members
  std::string text;                // for people: the entry without its weight, "srv+rdma:_egret._tcp.pool"
  std::string host;     // NAME, lower case; with a dot at its end it is absolute, else resolv.conf's `search` applies
  uint16_t port = 0;    // of kAddresses
  uint32_t weight = 0;  // of each member; 0: not given
};

// Whether the entry begins with dns+TRANSPORT: or srv+TRANSPORT:, and so has to be read by parse_name_entry().
bool is_name_entry(std::string_view text);

base::Expected<NameEntry> parse_name_entry(std::string_view text);

// Labels of 1 to 63 letters, digits, '-' and '_', 253 bytes in all; the last label is no number. A dot at the end is
// allowed.
bool is_host_name(std::string_view name);

// ASCII letters only, as in host names.
std::string lower_case(std::string_view name);

}  // namespace egret::discovery
