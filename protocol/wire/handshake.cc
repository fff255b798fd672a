#include "wire/handshake.h"

#include "wire/bytes.h"

namespace egret::wire {

namespace {

std::vector<std::byte> framed(FrameType type, size_t body_length) {
  std::vector<std::byte> frame(sizeof(FramePrefix) + body_length);
  FieldWriter out(frame.data());
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<uint8_t>(type));
  out.put(uint8_t{0});
  out.put(static_cast<uint32_t>(frame.size()));
  return frame;
}

FieldReader body_of(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FramePrefix)) return FieldReader(nullptr, 0);
  return FieldReader(frame.data() + sizeof(FramePrefix), frame.size() - sizeof(FramePrefix));
}

constexpr size_t kHelloBody = 8 + 8 + 4;
constexpr size_t kGrantBody = 5 * 8 + 5 * 4;
constexpr size_t kMaxReason = kMaxFrame - sizeof(FramePrefix) - 2;

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  auto frame = framed(FrameType::kHello, kHelloBody);
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(hello.features);
  out.put(hello.worker_id);
  out.put(hello.window);
  return frame;
}

std::vector<std::byte> encode(const Grant& grant) {
  auto frame = framed(FrameType::kGrant, kGrantBody);
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
  return frame;
}

std::vector<std::byte> encode(const Refusal& refusal) {
  const std::string_view reason = std::string_view(refusal.reason).substr(0, kMaxReason);
  auto frame = framed(FrameType::kRefusal, 2 + reason.size());
  FieldWriter out(frame.data() + sizeof(FramePrefix));
  out.put(static_cast<uint16_t>(reason.size()));
  out.put_bytes(reason);
  return frame;
}

std::vector<std::byte> encode(const Ready&) {
  return framed(FrameType::kReady, 0);
}

bool decode_prefix(std::span<const std::byte> frame, FrameType& type, std::string& error) {
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
  if (length != frame.size() || length > kMaxFrame) {
    error = "a handshake frame whose length is wrong";
    return false;
  }
  if (raw_type < static_cast<uint8_t>(FrameType::kHello) || raw_type > static_cast<uint8_t>(FrameType::kReady)) {
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
  return in.ok() && grant.layout.is_valid();
}

bool decode(std::span<const std::byte> frame, Refusal& refusal) {
  FieldReader in = body_of(frame);
  const size_t length = in.get<uint16_t>();
  refusal.reason = std::string(in.get_bytes(length));
  for (char& c : refusal.reason) {
    if (c < ' ' || c > '~') c = '?';
  }
  return in.ok();
}

}  // namespace egret::wire
