#include "wire/pool_frames.h"

#include <algorithm>
#include <string_view>

#include "wire/bytes.h"
#include "wire/framing.h"
#include "wire/handshake.h"

namespace egret::wire {

namespace {
constexpr size_t kPoolBody = 2 * 8 + 2 * 4 + 1 + 1 + 2 + 4;
constexpr size_t kMemberBody = 2 * 8 + 2 * 4 + 1 + 1 + 2 + 2 + 2;
constexpr size_t kStateBody = 8 + 4 + 1 + 3;
constexpr uint8_t kRestricted = 1;
constexpr uint8_t kPlacements = 2;
static_assert(sizeof(FramePrefix) + kMemberBody + 2 * kMaxMemberText <= kMaxPoolFrame);

// Of names, which may be in any language; no space and nothing that a terminal acts on.
bool is_one_word(std::string_view text) {
  constexpr char kDelete = 0x7f;
  return std::ranges::none_of(text, [](char c) { return (c >= 0 && c <= ' ') || c == kDelete; });
}
}  // namespace

std::vector<std::byte> encode(const Ask& ask) {
  auto frame = framed(FrameType::kAsk, 8);
  FieldWriter(frame.data() + sizeof(FramePrefix)).put(ask.features);
  return frame;
}

std::vector<std::byte> encode(const PoolHead& pool) {
  auto frame = framed(FrameType::kPool, kPoolBody);
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(pool.features);
  out.put(pool.version);
  out.put(pool.members);
  out.put(pool.rights);
  out.put(pool.placement);
  out.put(pool.is_restricted ? kRestricted : uint8_t{0});
  out.put(uint16_t{0});
  out.put(pool.op_timeout_ms);
  return frame;
}

std::vector<std::byte> encode(const MemberFrame& member) {
  const std::string_view name = std::string_view(member.name).substr(0, kMaxMemberText);
  const std::string_view address = std::string_view(member.address).substr(0, kMaxMemberText);
  auto frame = framed(FrameType::kMember, kMemberBody + name.size() + address.size());
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(member.version);
  out.put(member.tag);
  out.put(member.index);
  out.put(member.weight);
  out.put(static_cast<uint8_t>(member.state));
  out.put(member.ways);
  out.put(static_cast<uint16_t>(name.size()));
  out.put(static_cast<uint16_t>(address.size()));
  out.put(uint16_t{0});
  out.put_bytes(name);
  out.put_bytes(address);
  return frame;
}

std::vector<std::byte> encode(const MemberStateFrame& state) {
  auto frame = framed(FrameType::kMemberState, kStateBody);
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(state.version);
  out.put(state.index);
  out.put(static_cast<uint32_t>(state.state));
  return frame;
}

bool decode(std::span<const std::byte> frame, Ask& ask) {
  FieldReader in = body_of(frame);
  ask.features = in.get<uint64_t>();
  return in.ok();
}

bool decode(std::span<const std::byte> frame, PoolHead& pool) {
  FieldReader in = body_of(frame);
  pool.features = in.get<uint64_t>();
  pool.version = in.get<uint64_t>();
  pool.members = in.get<uint32_t>();
  pool.rights = in.get<uint32_t>();
  pool.placement = in.get<uint8_t>();
  pool.is_restricted = (in.get<uint8_t>() & kRestricted) != 0;
  in.get<uint16_t>();
  pool.op_timeout_ms = in.get<uint32_t>();
  return in.ok() && pool.version != 0 && pool.members <= kMaxPoolMembers && pool.placement < kPlacements;
}

bool decode(std::span<const std::byte> frame, MemberFrame& member) {
  FieldReader in = body_of(frame);
  member.version = in.get<uint64_t>();
  member.tag = in.get<uint64_t>();
  member.index = in.get<uint32_t>();
  member.weight = in.get<uint32_t>();
  const auto state = in.get<uint8_t>();
  member.ways = in.get<uint8_t>();
  const auto name_length = in.get<uint16_t>();
  const auto address_length = in.get<uint16_t>();
  in.get<uint16_t>();
  member.name = in.get_bytes(name_length);
  member.address = in.get_bytes(address_length);
  if (!in.ok() || name_length > kMaxMemberText || address_length > kMaxMemberText) return false;
  if (state >= kMemberStates || member.index >= kMaxPoolMembers || member.weight == 0 || member.tag == 0) return false;
  member.state = static_cast<MemberState>(state);
  return !member.name.empty() && is_one_word(member.name) && is_one_word(member.address);
}

bool decode(std::span<const std::byte> frame, MemberStateFrame& state) {
  FieldReader in = body_of(frame);
  state.version = in.get<uint64_t>();
  state.index = in.get<uint32_t>();
  const auto now = in.get<uint32_t>();
  if (!in.ok() || now >= kMemberStates || state.index >= kMaxPoolMembers) return false;
  state.state = static_cast<MemberState>(now);
  return true;
}

}  // namespace egret::wire
