#include "bench_paradigms/rpc/kv_message.h"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

namespace egret::bench_paradigms {

namespace {

// In place of a value's size.
constexpr uint16_t kMissCode = 0xffff;
constexpr uint16_t kDoneCode = 0xfffe;
constexpr uint16_t kFullCode = 0xfffd;
constexpr uint16_t kHerdGet = 0xfff;
constexpr uint16_t kHerdErase = 0xffe;
constexpr uint16_t kHerdNext = 0xffd;

std::string_view text_of(const std::byte* from, size_t bytes) {
  return {reinterpret_cast<const char*>(from), bytes};
}

}  // namespace

uint32_t kv_request_bytes(uint32_t key_bytes, uint32_t value_bytes) {
  return kKvHead + key_bytes + value_bytes;
}

uint32_t write_kv_request(std::span<std::byte> to, const KvRequest& request) {
  const auto value_size = static_cast<uint16_t>(request.value.size());
  to[0] = static_cast<std::byte>(request.kind);
  to[1] = static_cast<std::byte>(request.key.size());
  std::memcpy(&to[2], &value_size, sizeof value_size);
  std::memcpy(to.data() + kKvHead, request.key.data(), request.key.size());
  if (value_size > 0) std::memcpy(to.data() + kKvHead + request.key.size(), request.value.data(), value_size);
  return kKvHead + static_cast<uint32_t>(request.key.size()) + value_size;
}

std::optional<KvRequest> read_kv_request(Bytes body) {
  if (body.size() < kKvHead) return std::nullopt;
  const auto kind = std::to_integer<uint8_t>(body[0]);
  const auto key_size = std::to_integer<uint8_t>(body[1]);
  uint16_t value_size = 0;
  std::memcpy(&value_size, &body[2], sizeof value_size);
  if (kind > static_cast<uint8_t>(OpKind::kNext) || body.size() != size_t{kKvHead} + key_size + value_size)
    return std::nullopt;
  return KvRequest{static_cast<OpKind>(kind), text_of(body.data() + kKvHead, key_size),
                   text_of(body.data() + kKvHead + key_size, value_size)};
}

HerdKey herd_key(std::string_view key) {
  HerdKey made{};
  if (key.size() == kHerdKey) {
    std::memcpy(made.data(), key.data(), kHerdKey);
  } else {
    const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
    std::memcpy(made.data(), &hash, kHerdKey);
  }
  if (made[15] == 0) made[15] = 1;
  return made;
}

uint32_t write_herd_request(std::span<std::byte> to, const KvRequest& request) {
  auto word = static_cast<uint16_t>(request.value.size());
  if (request.kind == OpKind::kGet) word = kHerdGet;
  if (request.kind == OpKind::kErase) word = kHerdErase;
  if (request.kind == OpKind::kNext) word = kHerdNext;
  const size_t value = request.kind == OpKind::kPut ? request.value.size() : 0;
  if (value > 0) std::memcpy(to.data(), request.value.data(), value);
  std::memcpy(to.data() + value, &word, sizeof word);
  std::memcpy(to.data() + value + sizeof word, request.key.data(), kHerdKey);
  return static_cast<uint32_t>(value) + 2 + kHerdKey;
}

std::optional<KvRequest> read_herd_request(Bytes slot) {
  if (slot.size() < 2 + kHerdKey) return std::nullopt;
  const std::byte* const word_at = slot.data() + slot.size() - kHerdKey - 2;
  uint16_t word = 0;
  std::memcpy(&word, word_at, sizeof word);
  word &= 0xfff;  // the rest is the engine's
  const std::string_view key = text_of(word_at + 2, kHerdKey);
  if (word == kHerdGet) return KvRequest{OpKind::kGet, key, {}};
  if (word == kHerdErase) return KvRequest{OpKind::kErase, key, {}};
  if (word == kHerdNext) return KvRequest{OpKind::kNext, key, {}};
  if (word > kHerdMostValue || word + 2 + kHerdKey > slot.size()) return std::nullopt;
  return KvRequest{OpKind::kPut, key, text_of(word_at - word, word)};
}

uint32_t write_kv_response(std::span<std::byte> to, Outcome outcome, std::string_view value) {
  uint16_t code = kFullCode;
  if (outcome == Outcome::kHit) code = static_cast<uint16_t>(value.size());
  if (outcome == Outcome::kMiss) code = kMissCode;
  if (outcome == Outcome::kDone) code = kDoneCode;
  std::memcpy(to.data(), &code, sizeof code);
  if (outcome != Outcome::kHit) return kKvResponseHead;
  if (!value.empty()) std::memcpy(to.data() + kKvResponseHead, value.data(), value.size());
  return kKvResponseHead + static_cast<uint32_t>(value.size());
}

uint32_t seal_kv_hit(std::span<std::byte> to, uint32_t value_size) {
  const auto code = static_cast<uint16_t>(value_size);
  std::memcpy(to.data(), &code, sizeof code);
  return kKvResponseHead + value_size;
}

std::optional<KvResponse> read_kv_response(Bytes body) {
  if (body.size() < kKvResponseHead) return std::nullopt;
  uint16_t code = 0;
  std::memcpy(&code, body.data(), sizeof code);
  const bool is_bare = body.size() == kKvResponseHead;
  if (code == kMissCode && is_bare) return KvResponse{Outcome::kMiss, {}};
  if (code == kDoneCode && is_bare) return KvResponse{Outcome::kDone, {}};
  if (code == kFullCode && is_bare) return KvResponse{Outcome::kFull, {}};
  if (code > kKvMostValue || body.size() != kKvResponseHead + code) return std::nullopt;
  return KvResponse{Outcome::kHit, text_of(body.data() + kKvResponseHead, code)};
}

}  // namespace egret::bench_paradigms
