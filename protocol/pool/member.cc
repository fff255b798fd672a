#include "pool/member.h"

#include <charconv>
#include <unordered_set>

#include "base/text.h"
#include "pool/ketama.h"
#include "transport/address.h"

namespace egret::pool {

using base::Status;

namespace {

// The name of "shm:/run/x" is "/run/x"; the name of "rdma:[::1]:7000" is, as in libmemcached, "::1:7000".
std::string default_name(std::string_view address) {
  std::string name(address.substr(address.find(':') + 1));
  const size_t bracket = name.starts_with('[') ? name.find(']') : std::string::npos;
  if (bracket != std::string::npos && name.size() > 2) {  // a name is never empty
    name.erase(bracket, 1);
    name.erase(0, 1);
  }
  return name;
}

// Its address; of one in a network without the transport.
std::string_view place_of(const Member& member) {
  const std::string_view address = member.address;
  return transport::is_of_network(address) ? address.substr(address.find(':')) : address;
}

// Reads one word after the address. Returns what is wrong with it, or nothing.
std::string parse_attribute(std::string_view word, Member& member) {
  if (word.starts_with("weight=")) {
    if (parse_weight(word.substr(7), member.weight)) return {};
    return "expected weight=N with an N from 1 to " + std::to_string(kMaxWeight);
  }
  if (word.starts_with("name=")) {
    member.name = word.substr(5);
    if (!member.name.empty() && member.name.size() <= kMaxMemberName) return {};
    return "expected name=NAME with a NAME of 1 to " + std::to_string(kMaxMemberName) + " bytes";
  }
  return "expected ADDRESS [weight=N] [name=NAME]";
}

}  // namespace

bool parse_weight(std::string_view text, uint32_t& weight) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  return error == std::errc{} && end == text.data() + text.size() && weight >= 1 && weight <= kMaxWeight;
}

bool is_same_backend(const Member& one, const Member& other) {
  return one.name == other.name && place_of(one) == place_of(other);
}

std::string identity_of(const Member& member) {
  return member.name + '\n' + std::string(place_of(member));
}

std::string Member::to_string() const {
  return name == default_name(address) ? address : name + " (" + address + ")";
}

base::Expected<Member> parse_member(std::string_view text) {
  constexpr char kBlank = ' ';
  Member member;
  for (size_t at = text.find_first_not_of(kBlank); at < text.size(); at = text.find_first_not_of(kBlank, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(kBlank, at) - at);
    at += word.size();
    if (member.address.empty()) {
      member.address = word;
    } else if (const std::string wrong = parse_attribute(word, member); !wrong.empty()) {
      return Status::error(wrong + ", got " + base::quoted(text));
    }
  }
  if (Status valid = transport::check_address(member.address); !valid) return valid;
  if (transport::is_of_network(member.address) && member.address.find(":*:") != std::string::npos) {
    return Status::error("'*' is every address of the host that listens: name the backend's, got " +
                         base::quoted(text));
  }
  if (!member.name.empty()) return member;
  member.name = default_name(member.address);
  if (member.name.size() > kMaxMemberName) {
    return Status::error("an address of more than " + std::to_string(kMaxMemberName) + " bytes needs name=NAME, got " +
                         base::quoted(text));
  }
  return member;
}

Status check_members(std::span<const Member> members) {
  if (members.empty()) return Status::error("a pool needs at least one backend");
  if (members.size() > kMaxMembers) {
    return Status::error("a pool has at most " + std::to_string(kMaxMembers) + " backends, got " +
                         std::to_string(members.size()));
  }
  // Compare the names as ketama hashes them: of two backends with the same points the second would get no key.
  std::unordered_set<std::string_view> names;
  for (const Member& member : members) {
    if (names.insert(ketama_name(member.name)).second) continue;
    return Status::error("two of them are named " + base::quoted(ketama_name(member.name)) +
                         ": keys are spread by name, give each its own by name=NAME");
  }
  return Status::ok();
}

}  // namespace egret::pool
