// The binary protocol's constants and the head of its packets (memcached's docs/protocol-binary;
// BinaryProtocolRevamped).
//
//   head (24 bytes, big-endian): magic, opcode, key length (2), extras length, data type, status (2), body length (4),
//   opaque (4), CAS (8); then the body: extras, key, value
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace egret::memcache::binary {

inline constexpr char kRequestMagic = '\x80';
inline constexpr char kResponseMagic = '\x81';
inline constexpr size_t kHead = 24;
inline constexpr uint32_t kDoNotCreate = 0xffffffff;  // as the expiration of incr and decr

enum class Opcode : uint8_t {
  kGet = 0x00,
  kSet = 0x01,
  kAdd = 0x02,
  kReplace = 0x03,
  kDelete = 0x04,
  kIncrement = 0x05,
  kDecrement = 0x06,
  kQuit = 0x07,
  kFlush = 0x08,
  kGetQ = 0x09,
  kNoop = 0x0a,
  kVersion = 0x0b,
  kGetK = 0x0c,
  kGetKQ = 0x0d,
  kAppend = 0x0e,
  kPrepend = 0x0f,
  kStat = 0x10,
  kSetQ = 0x11,
  kAddQ = 0x12,
  kReplaceQ = 0x13,
  kDeleteQ = 0x14,
  kIncrementQ = 0x15,
  kDecrementQ = 0x16,
  kQuitQ = 0x17,
  kFlushQ = 0x18,
  kAppendQ = 0x19,
  kPrependQ = 0x1a,
  kVerbosity = 0x1b,
  kTouch = 0x1c,
  kGat = 0x1d,
  kGatQ = 0x1e,
  kSaslMechanisms = 0x20,
  kSaslAuth = 0x21,
  kSaslStep = 0x22,
  kGatK = 0x23,
  kGatKQ = 0x24,
};

// Whether the answer to this retrieval opcode contains the key.
constexpr bool wants_key(uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kGetK:
    case Opcode::kGetKQ:
    case Opcode::kGatK:
    case Opcode::kGatKQ:
      return true;
    default:
      return false;
  }
}

enum class Status : uint16_t {
  kOk = 0x00,
  kNotFound = 0x01,
  kExists = 0x02,
  kTooLarge = 0x03,
  kInvalid = 0x04,
  kNotStored = 0x05,
  kNonNumeric = 0x06,
  kAuthError = 0x20,
  kAuthContinue = 0x21,
  kUnknownCommand = 0x81,
  kOutOfMemory = 0x82,
  kInternal = 0x84,
  kTemporary = 0x86,
};

// memcached's text for the status; empty if it has none.
std::string_view text_of(Status status);

// The head of an answer.
struct Head {
  uint8_t opcode = 0;
  uint32_t opaque = 0;  // the request's, unchanged
  Status status = Status::kOk;
  uint16_t key_length = 0;
  uint8_t extras_length = 0;
  uint32_t body_length = 0;  // extras and key included
  uint64_t cas = 0;
};
// Both return the end of what they wrote: kHead bytes; kHead and the text of the status.
char* write_head(char* out, const Head& head);
char* write_status(char* out, uint8_t opcode, uint32_t opaque, Status status);
inline constexpr size_t kMaxStatusPacket = kHead + 64;

// Big-endian numbers. gcc takes a loop over the bytes for what it says, and makes no byte swap of it.
template <typename T>
T swapped(T value) {
  static_assert(std::endian::native == std::endian::little && std::is_unsigned_v<T>);
  static_assert(sizeof(T) == 8 || sizeof(T) == 4 || sizeof(T) == 2);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  return __builtin_bswap16(static_cast<uint16_t>(value));
}
template <typename T>
T read_big(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return swapped(value);
}
template <typename T>
char* write_big(char* to, T value) {
  value = swapped(value);
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

}  // namespace egret::memcache::binary
