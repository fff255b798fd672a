#include "discovery/name_members.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace egret::discovery {

namespace {

void sort_by_name(std::vector<pool::Member>& members) {
  const auto by_name = [](const pool::Member& a, const pool::Member& b) { return a.name < b.name; };
  const auto same_name = [](const pool::Member& a, const pool::Member& b) { return a.name == b.name; };
  std::stable_sort(members.begin(), members.end(), by_name);
  members.erase(std::unique(members.begin(), members.end(), same_name), members.end());
}

// Weights that are all the same, 0 mostly, say nothing.
bool has_weights(std::span<const ServiceRecord> services, uint16_t priority) {
  const ServiceRecord* first = nullptr;
  for (const ServiceRecord& service : services) {
    if (service.priority != priority) continue;
    if (first == nullptr) first = &service;
    if (service.weight != first->weight) return true;
  }
  return false;
}

}  // namespace

std::string address_text(const std::string& transport, const AddressRecord& record, uint16_t port) {
  const std::string host = record.is_v6 ? "[" + record.address + "]" : record.address;
  return transport + ":" + host + ":" + std::to_string(port);
}

bool is_v6_address(const std::string& address) {
  return address.find('[') != std::string::npos;
}

std::vector<pool::Member> members_of_addresses(const NameEntry& entry, std::span<const AddressRecord> addresses) {
  std::vector<pool::Member> members;
  for (const AddressRecord& record : addresses) {
    pool::Member member;
    member.address = address_text(entry.transport, record, entry.port);
    member.name = record.address + ":" + std::to_string(entry.port);  // as parse_member() names this address
    member.weight = std::max(entry.weight, 1U);
    members.push_back(std::move(member));
  }
  sort_by_name(members);
  return members;
}

std::vector<Target> targets_of(const NameEntry& entry, const DnsAnswer& answer, size_t& unusable) {
  uint16_t priority = UINT16_MAX;
  for (const ServiceRecord& service : answer.services) priority = std::min(priority, service.priority);
  const bool weighted = entry.weight == 0 && has_weights(answer.services, priority);
  std::vector<Target> targets;
  for (const ServiceRecord& service : answer.services) {
    if (service.priority != priority) continue;
    Target target;
    target.name = service.target + ":" + std::to_string(service.port);
    target.host = service.target;
    target.port = service.port;
    if (target.name.size() > pool::kMaxMemberName) {
      ++unusable;
      continue;
    }
    target.weight = weighted ? std::clamp<uint32_t>(service.weight, 1, pool::kMaxWeight) : std::max(entry.weight, 1U);
    targets.push_back(std::move(target));
  }
  // Of two records with one name the greater weight: whatever the order of the records, the outcome is the same.
  const auto before = [](const Target& a, const Target& b) {
    return std::tie(a.name, b.weight) < std::tie(b.name, a.weight);
  };
  const auto same_name = [](const Target& a, const Target& b) { return a.name == b.name; };
  std::sort(targets.begin(), targets.end(), before);
  targets.erase(std::unique(targets.begin(), targets.end(), same_name), targets.end());
  return targets;
}

std::string choose_address(const NameEntry& entry, std::span<const AddressRecord> addresses, uint16_t port,
                           const std::string& before) {
  const AddressRecord* best = nullptr;
  for (const AddressRecord& record : addresses) {
    if (address_text(entry.transport, record, port) == before) return before;
    if (best == nullptr || std::tie(record.is_v6, record.address) < std::tie(best->is_v6, best->address))
      best = &record;
  }
  return best == nullptr ? std::string() : address_text(entry.transport, *best, port);
}

std::vector<pool::Member> members_of_targets(const NameEntry& entry, std::span<const Target> targets) {
  std::vector<pool::Member> members;
  for (const Target& target : targets) {
    pool::Member member;
    member.address = target.address.empty() ? entry.transport + ":" + target.name : target.address;
    member.name = target.name;
    member.weight = target.weight;
    members.push_back(std::move(member));
  }
  sort_by_name(members);
  return members;
}

std::vector<pool::Member> with_missing(std::vector<pool::Member> members, std::span<const pool::Member> before) {
  members.insert(members.end(), before.begin(), before.end());
  sort_by_name(members);  // of two with one name it keeps the first: the new one
  return members;
}

}  // namespace egret::discovery
