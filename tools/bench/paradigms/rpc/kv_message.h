// An op as a request's body, and a result as a response's body. Parsed with checks: both come from another host.
//
//   request:                      kind 1 | key size 1 | value size 2 | key | value
//   request, right-aligned (001): value | word 2: 12 bits: get, erase, next or the value's size | key 16
//   response (004):               value size 2, or what came of it | value
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "bench_paradigms/rpc/message.h"

namespace egret::bench_paradigms {

struct KvRequest {
  OpKind kind = OpKind::kGet;
  std::string_view key;
  std::string_view value;  // kPut
};
struct KvResponse {
  Outcome outcome = Outcome::kFailed;
  std::string_view value;
};

inline constexpr uint32_t kKvHead = 4;
inline constexpr uint32_t kKvMostValue = 0xff00;
inline constexpr uint32_t kKvResponseHead = 2;
uint32_t kv_request_bytes(uint32_t key_bytes, uint32_t value_bytes);
inline uint32_t kv_response_bytes(uint32_t value_bytes) {
  return kKvResponseHead + std::max(value_bytes, 8u);
}

// `to` has room for it. Returns its size.
uint32_t write_kv_request(std::span<std::byte> to, const KvRequest& request);
std::optional<KvRequest> read_kv_request(Bytes body);

// Paper 001: a key is 16 bytes and never 0; here its last byte is not. Another key's place takes 16 bytes of its hash.
inline constexpr uint32_t kHerdKey = 16;
inline constexpr uint32_t kHerdMostValue = 1006;
using HerdKey = std::array<char, kHerdKey>;
HerdKey herd_key(std::string_view key);
// The key is 16 bytes.
uint32_t write_herd_request(std::span<std::byte> to, const KvRequest& request);
std::optional<KvRequest> read_herd_request(Bytes slot);

uint32_t write_kv_response(std::span<std::byte> to, Outcome outcome, std::string_view value = {});
// A hit whose value is in place already, behind kKvResponseHead.
uint32_t seal_kv_hit(std::span<std::byte> to, uint32_t value_size);
std::optional<KvResponse> read_kv_response(Bytes body);

}  // namespace egret::bench_paradigms
