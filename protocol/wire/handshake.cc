#include "wire/handshake.h"

#include <array>
#include <cstring>
#include <string_view>

#include "wire/bytes.h"
#include "wire/framing.h"

namespace egret::wire {

namespace {

constexpr size_t kHelloBody = 8 + 8 + 4;
constexpr size_t kGrantBody = 5 * 8 + 5 * 4;
static_assert(sizeof(FramePrefix) + kGrantBody == kGrantProofOffset);
static_assert(kNonceBytes == kProofBytes);
constexpr size_t kSlotSizesBytes = 2 * 4;
constexpr size_t kRightsBytes = 4;
constexpr size_t kComeBackBytes = 4;
constexpr size_t kMemberBytes = 8;
constexpr size_t kMaxReason = kMaxFrame - sizeof(FramePrefix) - 2 - kComeBackBytes;

void put_array(FieldWriter& out, const std::array<std::byte, kProofBytes>& bytes) {
  out.put_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void get_array(FieldReader& in, std::array<std::byte, kProofBytes>& bytes) {
  const std::string_view read = in.get_bytes(bytes.size());
  bytes = {};
  if (!read.empty()) std::memcpy(bytes.data(), read.data(), read.size());
}

// A frame that contains only a nonce or a proof.
std::vector<std::byte> framed_array(FrameType type, const std::array<std::byte, kProofBytes>& bytes) {
  auto frame = framed(type, bytes.size());
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  put_array(out, bytes);
  return frame;
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  const bool authenticates = (hello.features & kAuthenticate) != 0;
  const bool has_sizes = (hello.features & kSlotSizes) != 0;
  const bool comes_back = (hello.features & kComeBack) != 0;
  const bool is_relayed = (hello.features & kRelayed) != 0;
  auto frame =
      framed(FrameType::kHello, kHelloBody + (authenticates ? kNonceBytes : 0) + (has_sizes ? kSlotSizesBytes : 0) +
                                    (comes_back ? kComeBackBytes : 0) + (is_relayed ? kMemberBytes : 0));
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(hello.features);
  out.put(hello.worker_id);
  out.put(hello.window);
  if (authenticates) put_array(out, hello.nonce);
  if (has_sizes) {
    out.put(hello.request_slot_size);
    out.put(hello.response_slot_size);
  }
  if (comes_back) out.put(hello.asked_back);
  if (is_relayed) out.put(hello.member);
  return frame;
}

std::vector<std::byte> encode(const Challenge& challenge) {
  return framed_array(FrameType::kChallenge, challenge.nonce);
}

std::vector<std::byte> encode(const ClientProof& proof) {
  return framed_array(FrameType::kProof, proof.proof);
}

std::vector<std::byte> encode(const Grant& grant) {
  const bool authenticates = (grant.features & kAuthenticate) != 0;
  const bool has_rights = (grant.features & kRights) != 0;
  auto frame =
      framed(FrameType::kGrant, kGrantBody + (authenticates ? kProofBytes : 0) + (has_rights ? kRightsBytes : 0));
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(grant.features);
  out.put(grant.session_id);
  out.put(grant.nonce);
  out.put(grant.epoch);
  out.put(grant.hash_seed);
  out.put(grant.item_size_max);
  out.put(grant.layout.lanes);
  out.put(grant.layout.window);
  out.put(grant.layout.request_slot_size);
  out.put(grant.layout.response_slot_size);
  if (authenticates) put_array(out, grant.proof);
  if (has_rights) out.put(grant.rights);
  return frame;
}

std::vector<std::byte> encode(const Refusal& refusal) {
  const std::string_view reason = std::string_view(refusal.reason).substr(0, kMaxReason);
  const bool asks_back = refusal.come_back_ms != 0;
  auto frame = framed(FrameType::kRefusal, 2 + reason.size() + (asks_back ? kComeBackBytes : 0));
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(static_cast<uint16_t>(reason.size()));
  out.put_bytes(reason);
  if (asks_back) out.put(refusal.come_back_ms);
  return frame;
}

std::vector<std::byte> encode(const Ready&) {
  return framed(FrameType::kReady, 0);
}

bool decode_prefix(std::span<const std::byte> frame, FrameType& type, std::string& error, size_t longest) {
  FieldReader in(frame.data(), frame.size());
  const auto magic = in.get<uint64_t>();
  const auto version = in.get<uint16_t>();
  const auto raw_type = in.get<uint8_t>();
  in.get<uint8_t>();
  const auto length = in.get<uint32_t>();
  if (!in.ok() || magic != kMagic) {
    error = "not an egret handshake";
    return false;
  }
  if (version < kOldestVersion || version > kVersion) {
    error = "the peer speaks version " + std::to_string(version) + ", this side " + std::to_string(kOldestVersion) +
            " to " + std::to_string(kVersion);
    return false;
  }
  if (length != frame.size() || length > longest) {
    error = "a handshake frame whose length is wrong";
    return false;
  }
  if (raw_type < static_cast<uint8_t>(FrameType::kHello) || raw_type > static_cast<uint8_t>(FrameType::kMemberState)) {
    error = "a handshake frame of unknown type " + std::to_string(raw_type);
    return false;
  }
  type = static_cast<FrameType>(raw_type);
  return true;
}

bool decode(std::span<const std::byte> frame, Hello& hello) {
  FieldReader in = body_of(frame);
  hello.features = in.get<uint64_t>();
  hello.worker_id = in.get<uint64_t>();
  hello.window = in.get<uint32_t>();
  if ((hello.features & kAuthenticate) != 0) get_array(in, hello.nonce);
  const bool has_sizes = (hello.features & kSlotSizes) != 0;
  hello.request_slot_size = has_sizes ? in.get<uint32_t>() : 0;
  hello.response_slot_size = has_sizes ? in.get<uint32_t>() : 0;
  hello.asked_back = (hello.features & kComeBack) != 0 ? in.get<uint32_t>() : 0;
  hello.member = (hello.features & kRelayed) != 0 ? in.get<uint64_t>() : 0;
  return in.ok();
}

bool decode(std::span<const std::byte> frame, Challenge& challenge) {
  FieldReader in = body_of(frame);
  get_array(in, challenge.nonce);
  return in.ok();
}

bool decode(std::span<const std::byte> frame, ClientProof& proof) {
  FieldReader in = body_of(frame);
  get_array(in, proof.proof);
  return in.ok();
}

bool decode(std::span<const std::byte> frame, Grant& grant) {
  FieldReader in = body_of(frame);
  grant.features = in.get<uint64_t>();
  grant.session_id = in.get<uint64_t>();
  grant.nonce = in.get<uint64_t>();
  grant.epoch = in.get<uint64_t>();
  grant.hash_seed = in.get<uint64_t>();
  grant.item_size_max = in.get<uint32_t>();
  grant.layout.lanes = in.get<uint32_t>();
  grant.layout.window = in.get<uint32_t>();
  grant.layout.request_slot_size = in.get<uint32_t>();
  grant.layout.response_slot_size = in.get<uint32_t>();
  if ((grant.features & kAuthenticate) != 0) get_array(in, grant.proof);
  grant.rights = (grant.features & kRights) != 0 ? in.get<uint32_t>() : op::kAllRights;
  return in.ok() && grant.layout.is_valid();
}

bool decode(std::span<const std::byte> frame, Refusal& refusal) {
  FieldReader in = body_of(frame);
  const size_t length = in.get<uint16_t>();
  refusal.reason = std::string(in.get_bytes(length));
  for (char& c : refusal.reason) {
    if (c < ' ' || c > '~') c = '?';
  }
  const bool is_whole = in.ok();
  refusal.come_back_ms = is_whole && in.left() >= kComeBackBytes ? in.get<uint32_t>() : 0;
  return is_whole;
}

}  // namespace egret::wire
