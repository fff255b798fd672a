// Makes members of what a name service answered. Pure: the same answers and the same members before give the same
// members, in the order of their names, each name once.
//
//   addresses ─ members_of_addresses() ─▶ members
//   services  ─ targets_of() ─▶ targets ─ (an address for each) ─▶ members_of_targets() ─▶ members
//
// Thread: any; values without state of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "discovery/dns_answer.h"
#include "discovery/name_entry.h"
#include "pool/member.h"

namespace egret::discovery {

// A host that SRV records name, with what is known of its address.
struct Target {
  std::string name;  // HOST:PORT, the name of the member
  std::string host;
  uint16_t port = 0;
  uint32_t weight = 1;
  std::string address;  // TRANSPORT:ADDRESS:PORT; empty: not known yet
};

// "rdma:10.0.0.1:11311", "tcp:[::1]:11311"
std::string address_text(const std::string& transport, const AddressRecord& record, uint16_t port);
// Whether an address made by address_text() is IPv6.
bool is_v6_address(const std::string& address);

// Of `entry`, which is of kAddresses.
std::vector<pool::Member> members_of_addresses(const NameEntry& entry, std::span<const AddressRecord> addresses);

// Of `entry`, which is of kServices. Takes only the records of the lowest priority. The weights are those of the
// records, at most kMaxWeight, if they differ and the entry has none. Counts in `unusable` the names that are too long.
std::vector<Target> targets_of(const NameEntry& entry, const DnsAnswer& answer, size_t& unusable);

// The address for a target of `entry`, of those that its host has: `before` if it is one of them, else the smallest IPv4
// address, else the smallest IPv6 address. Empty: there are none.
std::string choose_address(const NameEntry& entry, std::span<const AddressRecord> addresses, uint16_t port,
                           const std::string& before);

// A target without an address is a member all the same: its address is its host name, which the transport looks up when
// it connects. Every proxy then has the same members, whichever addresses it could learn.
std::vector<pool::Member> members_of_targets(const NameEntry& entry, std::span<const Target> targets);

// `members` and those of `before` that are in the set no more, by name.
std::vector<pool::Member> with_missing(std::vector<pool::Member> members, std::span<const pool::Member> before);

}  // namespace egret::discovery
