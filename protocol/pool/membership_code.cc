#include "pool/membership_code.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "op/hash.h"

namespace egret::pool {

using base::Status;

namespace {

constexpr uint16_t kNone = 0xffff;
constexpr uint64_t kNumberSeed = 0x70'69'68'73'72'65'62'6d;  // "mbership"

void put16(std::string& to, size_t value) {
  const auto number = static_cast<uint16_t>(value);
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Reads fields one after the other; reading past the end makes ok() false.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : left_(bytes) {}
  std::string_view take(size_t length) {
    is_ok_ = is_ok_ && length <= left_.size();
    if (!is_ok_) return {};
    const std::string_view taken = left_.substr(0, length);
    left_.remove_prefix(length);
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    if (const std::string_view bytes = take(sizeof value); is_ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  bool ok() const { return is_ok_; }
  bool at_end() const { return is_ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool is_ok_ = true;
};

}  // namespace

std::string encode_membership(PlacementRule rule, std::span<const Member> members, size_t mine) {
  std::vector<size_t> order(members.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return std::string_view(members[i].name); });
  const auto at = std::ranges::find(order, mine);
  std::string bytes{rule == PlacementRule::kKetama ? '\0' : '\1', '\0'};
  put16(bytes, at == order.end() ? kNone : static_cast<size_t>(at - order.begin()));
  put16(bytes, members.size());
  for (const size_t i : order) {
    put16(bytes, members[i].weight);
    bytes.push_back(static_cast<char>(members[i].name.size()));
    bytes += members[i].name;
  }
  return bytes;
}

uint64_t number_of_membership(std::string_view bytes) {
  return std::max<uint64_t>(op::hash_key(bytes, kNumberSeed), 1);
}

base::Expected<SeenMembership> decode_membership(std::string_view bytes) {
  Fields in(bytes);
  const auto rule = in.number<uint8_t>();
  const auto reserved = in.number<uint8_t>();
  const auto mine = in.number<uint16_t>();
  const auto count = in.number<uint16_t>();
  if (!in.ok() || rule > 1 || reserved != 0) return Status::error("not a membership");
  if (count == 0 || count > kMaxMembers || (mine != kNone && mine >= count))
    return Status::error("an impossible number of members");
  std::vector<Member> members(count);
  for (Member& member : members) {
    member.weight = in.number<uint16_t>();
    member.name = in.take(in.number<uint8_t>());
    if (!in.ok() || member.name.empty() || member.weight == 0 || member.weight > kMaxWeight)
      return Status::error("a malformed member");
  }
  if (!in.at_end()) return Status::error("bytes after the last member");
  if (Status checked = check_members(members); !checked) return checked;
  return SeenMembership{Placement(rule == 0 ? PlacementRule::kKetama : PlacementRule::kRendezvous, members),
                        mine == kNone ? kNoMember : mine};
}

}  // namespace egret::pool
