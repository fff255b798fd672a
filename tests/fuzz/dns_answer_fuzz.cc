// Any bytes as the answer of a name server: records of host names and addresses alone come out of them, and members that
// the option `backends` would take as well.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "discovery/dns_answer.h"
#include "discovery/name_entry.h"
#include "discovery/name_members.h"
#include "pool/member.h"

namespace {

using egret::discovery::AddressRecord;
using egret::discovery::DnsAnswer;
using egret::discovery::is_host_name;
using egret::discovery::NameEntry;
using egret::discovery::NameKind;
using egret::discovery::Target;
using egret::pool::Member;

void check_addresses(const std::vector<AddressRecord>& addresses) {
  for (const AddressRecord& record : addresses) {
    EGRET_CHECK(is_host_name(record.owner));
    EGRET_CHECK((record.address.find(':') != std::string::npos) == record.is_v6);
  }
}

// In the order of their names, each name once, and each as a line of the option.
void check_members(const std::vector<Member>& members) {
  const Member* before = nullptr;
  for (const Member& member : members) {
    EGRET_CHECK(before == nullptr || before->name < member.name);
    before = &member;
    const auto parsed =
        egret::pool::parse_member(member.address + " name=" + member.name + " weight=" + std::to_string(member.weight));
    EGRET_CHECK(parsed && parsed.value() == member);
  }
}

void check_targets(const DnsAnswer& answer) {
  const NameEntry entry{.kind = NameKind::kServices};
  size_t unusable = 0;
  std::vector<Target> targets = egret::discovery::targets_of(entry, answer, unusable);
  EGRET_CHECK(targets.size() + unusable <= answer.services.size());
  for (Target& target : targets) {
    EGRET_CHECK(is_host_name(target.host) && target.port != 0);
    target.address = egret::discovery::choose_address(entry, answer.additional, target.port, "");
  }
  const std::vector<Member> members = egret::discovery::members_of_targets(entry, targets);
  EGRET_CHECK(members.size() == targets.size());
  check_members(members);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = egret::discovery::parse_dns_answer({data, size});
  if (!parsed) return 0;
  const DnsAnswer& answer = parsed.value();
  check_addresses(answer.addresses);
  check_addresses(answer.additional);
  const NameEntry entry{.kind = NameKind::kAddresses, .port = 11311};
  check_members(egret::discovery::members_of_addresses(entry, answer.addresses));
  check_targets(answer);
  return 0;
}
