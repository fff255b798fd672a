// The records of one DNS message, as far as members can be made of them: A, AAAA and SRV.
//
//   bytes of a name server ─▶ parse_dns_answer() ─▶ DnsAnswer ─▶ name_members.h
//
// The bytes are hostile: counts and lengths are checked, names that are no host names are left out and counted. A
// message has at most 65,535 bytes, which bounds the records.
// Thread: any; values without state of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace egret::discovery {

struct AddressRecord {
  std::string owner;    // lower case, without a dot at its end
  std::string address;  // "10.0.0.1", "2001:db8::1"
  bool is_v6 = false;
  bool operator==(const AddressRecord&) const = default;
};

struct ServiceRecord {
  std::string target;  // lower case, without a dot at its end
  uint16_t port = 0;
  uint16_t priority = 0;
  uint16_t weight = 0;
  bool operator==(const ServiceRecord&) const = default;
};

struct DnsAnswer {
  std::vector<AddressRecord> addresses;   // of the section "answer", whoever owns them: a CNAME may lead elsewhere
  std::vector<AddressRecord> additional;  // of the section "additional"
  std::vector<ServiceRecord> services;    // without those whose target is ".": they say that there is no service
  uint32_t ttl = UINT32_MAX;              // seconds: the least of all these records; UINT32_MAX: there are none
  bool is_truncated = false;
  size_t unusable = 0;  // records of these types whose data or names cannot be used
};

base::Expected<DnsAnswer> parse_dns_answer(std::span<const unsigned char> message);

}  // namespace egret::discovery
