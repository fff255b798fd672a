#include "discovery/dns_answer.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <arpa/nameser.h>

#include "discovery/name_entry.h"

namespace egret::discovery {

using base::Status;

namespace {

constexpr uint32_t kMaxTtl = INT32_MAX;  // RFC 2181: a TTL with the highest bit set is 0

std::string without_dot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower_case(name);
}

bool read_address(const ns_rr& record, AddressRecord& address) {
  address.is_v6 = record.type == ns_t_aaaa;
  const size_t size = address.is_v6 ? sizeof(in6_addr) : sizeof(in_addr);
  if (record.rdlength != size || !is_host_name(record.name)) return false;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.is_v6 ? AF_INET6 : AF_INET, record.rdata, text.data(), text.size());
  address.owner = without_dot(record.name);
  address.address = text.data();
  return true;
}

enum class Service { kUsable, kNone, kUnusable };

Service read_service(const ns_msg& message, const ns_rr& record, ServiceRecord& service) {
  constexpr size_t kFixed = 6;  // priority, weight, port
  if (record.rdlength <= kFixed) return Service::kUnusable;
  std::array<char, NS_MAXDNAME> target{};
  const unsigned char* const data = record.rdata;
  // The library escapes odd bytes by a backslash, which no host name has.
  const int used = ::ns_name_uncompress(message._msg, message._eom, data + kFixed, target.data(), target.size());
  if (used < 0 || kFixed + static_cast<size_t>(used) != record.rdlength) return Service::kUnusable;
  service.priority = static_cast<uint16_t>(::ns_get16(data));
  service.weight = static_cast<uint16_t>(::ns_get16(data + 2));
  service.port = static_cast<uint16_t>(::ns_get16(data + 4));
  service.target = without_dot(target.data());
  if (service.target.empty()) return Service::kNone;
  return is_host_name(service.target) && service.port != 0 ? Service::kUsable : Service::kUnusable;
}

void limit_ttl(const ns_rr& record, DnsAnswer& answer) {
  answer.ttl = std::min(answer.ttl, record.ttl > kMaxTtl ? 0 : record.ttl);
}

void take_record(const ns_msg& message, ns_sect section, const ns_rr& record, DnsAnswer& answer) {
  if (record.type == ns_t_cname && section == ns_s_an) limit_ttl(record, answer);
  const bool is_address = record.type == ns_t_a || record.type == ns_t_aaaa;
  const bool is_service = record.type == ns_t_srv && section == ns_s_an;
  if (record.rr_class != ns_c_in || (!is_address && !is_service)) return;
  bool usable = false;
  if (is_address) {
    AddressRecord address;
    usable = read_address(record, address);
    if (usable) (section == ns_s_an ? answer.addresses : answer.additional).push_back(std::move(address));
  } else {
    ServiceRecord service;
    const Service outcome = read_service(message, record, service);
    usable = outcome != Service::kUnusable;
    if (outcome == Service::kUsable) answer.services.push_back(std::move(service));
  }
  if (usable) {
    limit_ttl(record, answer);
  } else {
    ++answer.unusable;
  }
}

}  // namespace

base::Expected<DnsAnswer> parse_dns_answer(std::span<const unsigned char> bytes) {
  const Status malformed = Status::error("malformed answer");
  ns_msg message{};
  if (bytes.size() > NS_MAXMSG || ::ns_initparse(bytes.data(), static_cast<int>(bytes.size()), &message) != 0) {
    return malformed;
  }
  DnsAnswer answer;
  answer.is_truncated = ns_msg_getflag(message, ns_f_tc) != 0;
  for (const ns_sect section : {ns_s_an, ns_s_ar}) {
    for (int i = 0; i < ns_msg_count(message, section); ++i) {
      ns_rr record{};
      if (::ns_parserr(&message, section, i, &record) != 0) return malformed;
      take_record(message, section, record, answer);
    }
  }
  return answer;
}

}  // namespace egret::discovery
