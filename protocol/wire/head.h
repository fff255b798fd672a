// The heads of messages: writing our own, and checking those of a peer.
//
//   client  write_request_head ─▶ slot ─▶ read_request    server: copies the slot, checks the copy
//   client  read_response_head ◀─ slot ◀─ write_response_head    server
//
// The first word of a slot, the seq, is not written here: the publisher of the message writes it last. Reading checks
// every length against the slot's size, and reads each byte of a head once. Inline, because this is the hot path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/slot_copy.h"
#include "wire/bytes.h"
#include "wire/slot.h"

namespace egret::wire {

// --- requests

// Writes the head of the message at `slot`, whose `op_count` ops (`length` bytes) are behind it already.
inline void write_request_head(std::byte* slot, const Seal& seal, uint64_t seq, uint32_t length, uint16_t op_count,
                               uint16_t flags = 0) {
  FieldWriter checked(slot + kRequestChecked);
  checked.put(length);
  checked.put(op_count);
  checked.put(flags);
  FieldWriter(slot + offsetof(RequestHeader, checksum))
      .put(seal.checksum(slot + kRequestChecked, kRequestHeadChecked, length, seq));
}

// A request that was copied out of its slot, or is viewed there.
struct Request {
  uint32_t length = 0;
  uint16_t op_count = 0;
  uint16_t flags = 0;
  const std::byte* body = nullptr;  // `length` bytes, in the copy, or in the slot
};

// Copies the request at `slot` (of `slot_size` bytes, which the peer may be changing) to `copy` (as large) and checks
// the copy. False: it is not the whole message `seq` of this session; it may become so later.
inline bool read_request(const std::byte* slot, uint32_t slot_size, const Seal& seal, uint64_t seq, std::byte* copy,
                         Request& request) {
  RequestHeader header{};
  base::slot_copy(reinterpret_cast<std::byte*>(&header), slot, sizeof header);
  if (header.length > slot_size - sizeof header) return false;
  // Copy the body behind the checked part of the head, so that one checksum run covers both.
  std::memcpy(copy, reinterpret_cast<const std::byte*>(&header) + kRequestChecked, kRequestHeadChecked);
  base::slot_copy(copy + kRequestHeadChecked, slot + sizeof header, header.length);
  request = {header.length, header.op_count, header.flags, copy + kRequestHeadChecked};
  return seal.checksum(copy, kRequestHeadChecked, header.length, seq) == header.checksum;
}

// The same where the peer is this process: nobody changes the slot, and the request stays in it.
inline bool view_request(const std::byte* slot, uint32_t slot_size, const Seal& seal, uint64_t seq, Request& request) {
  RequestHeader header{};
  std::memcpy(&header, slot, sizeof header);
  if (header.length > slot_size - sizeof header) return false;
  static_assert(kRequestChecked + kRequestHeadChecked == sizeof header);
  request = {header.length, header.op_count, header.flags, slot + sizeof header};
  return seal.checksum(slot + kRequestChecked, kRequestHeadChecked, header.length, seq) == header.checksum;
}

// --- responses

// Writes the head of the message at `slot`, whose `result_count` results (`length` bytes) are behind it already. Leaves
// `asleep` as it is.
inline void write_response_head(std::byte* slot, const Seal& seal, uint64_t seq, uint32_t length, uint16_t result_count,
                                uint32_t processing_ns, uint8_t hints = 0) {
  FieldWriter checked(slot + kResponseChecked);
  checked.put(length);
  checked.put(result_count);
  checked.put(uint8_t{0});  // status
  checked.put(hints);
  checked.put(processing_ns);
  checked.put(uint32_t{0});
  FieldWriter(slot + offsetof(ResponseHeader, checksum))
      .put(seal.checksum(slot + kResponseChecked, kResponseHeadChecked, length, seq));
}

// The size of the response by its head at `at`, head and body together. The bytes may be torn: use it only to decide
// how much to read next. 0: no response in a slot of `slot_size` bytes can have that size.
inline size_t response_size(const std::byte* at, size_t slot_size) {
  FieldReader reader(at + offsetof(ResponseHeader, length), sizeof(uint32_t));
  const size_t size = sizeof(ResponseHeader) + reader.get<uint32_t>();
  return size <= slot_size ? size : 0;
}

// Whether the `room` bytes at `at` contain the whole response to `seq`.
inline bool is_whole_response(const std::byte* at, size_t room, const Seal& seal, uint64_t seq) {
  if (room < sizeof(ResponseHeader)) return false;
  FieldReader reader(at + offsetof(ResponseHeader, checksum), sizeof(ResponseHeader) - sizeof(uint64_t));
  const auto checksum = reader.get<uint64_t>();
  reader.get<uint64_t>();  // asleep
  const auto length = reader.get<uint32_t>();
  if (length > room - sizeof(ResponseHeader)) return false;
  return seal.checksum(at + kResponseChecked, kResponseHeadChecked, length, seq) == checksum;
}

struct Response {
  uint32_t length = 0;
  uint16_t result_count = 0;
  uint8_t hints = 0;
  uint32_t processing_ns = 0;
  const std::byte* body = nullptr;  // `length` bytes
};

// Reads the head of a whole response. False: it is of another version, has a hint that was not agreed, or its body does
// not fit a slot of `slot_size` bytes (on shm the peer may have changed it after is_whole_response()).
inline bool read_response_head(const std::byte* at, uint32_t slot_size, Response& response, uint8_t known_hints = 0) {
  FieldReader reader(at + kResponseChecked, kResponseHeadChecked);
  response.length = reader.get<uint32_t>();
  response.result_count = reader.get<uint16_t>();
  const auto status = reader.get<uint8_t>();
  response.hints = reader.get<uint8_t>();
  response.processing_ns = reader.get<uint32_t>();
  const auto reserved = reader.get<uint32_t>();
  response.body = at + sizeof(ResponseHeader);
  if (status != 0 || reserved != 0 || (response.hints & ~known_hints) != 0) return false;
  return response.length <= slot_size - sizeof(ResponseHeader);
}

}  // namespace egret::wire
