// The bytes of a request and of a response, for each half: written by one end, looked for by the other. Pure functions
// over one slot's memory. What a device writes or reads at the same time is loaded and stored as atomics.
//
//   flagged slot (paper 004, figure 3)   head 2: arrived 1 bit, wants a reply 1 bit, size 14 | body | tail 1
//   right-aligned slot (001, figure 8)   … | value | word 2: lap 4 bits, the user's 12 | key 16, its last byte never 0
//   ring                                 head 4: size 16, slot 12, lap 4, never 0 | body | tail 2: slot 12, lap 4, + 1
//   sent                                 label 2 | body
//   response, written or left            head 2: done 1 bit, size 15 | kAdaptive: time 2 | body | tail 1 (1 + lap)
//   response, sent                       label 2 | body; or no payload, and label 2 and body 2 as immediate data
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bench_paradigms/rpc/shape.h"

namespace egret::bench_paradigms {

using Bytes = std::span<const std::byte>;

// What of a buffer is to be sent.
struct Cut {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};
// A request as the server finds it.
struct Request {
  Bytes body;  // right-aligned: the whole slot
  Label label;
  bool wants_reply = false;
  uint32_t bytes = 0;  // from the slot's begin, with head and tail
};

Cut write_flagged(std::byte* slot, Bytes body, bool wants_reply);
std::optional<Request> look_flagged(const std::byte* slot, uint32_t most);
void clear_flagged(std::byte* slot, uint32_t bytes);

Cut write_right_aligned(std::byte* slot, Bytes body, Label label);
std::optional<Request> look_right_aligned(const std::byte* slot, uint16_t slot_number);
void clear_right_aligned(std::byte* slot);

Cut write_in_ring(std::byte* at, Bytes body, Label label, bool wants_reply);
std::optional<Request> look_in_ring(const std::byte* at, uint32_t most, Label expected);

inline constexpr uint32_t kSentHead = 2;
void write_label(std::byte* to, Label label);
Label read_label(const std::byte* from);
uint32_t to_immediate(Label label, Bytes body);  // of two bytes
Label from_immediate(uint32_t immediate, std::byte* body);

// A response in a slot. `time`: what the server took, in units of kTimeUnitNs; only where the head is 4 bytes.
inline constexpr uint64_t kTimeUnitNs = 128;
struct Response {
  uint32_t size = 0;  // of the body
  uint16_t time = 0;
};
// The body is in place already. Returns the bytes to be written: head, body, tail.
uint32_t seal_response(std::byte* slot, uint32_t head, Response response, uint8_t lap);
void clear_response(std::byte* slot);
std::optional<Response> look_response(const std::byte* slot, uint32_t head);
// Whether the last byte is there, too.
bool has_tail(const std::byte* slot, uint32_t head, uint32_t size, uint8_t lap);

}  // namespace egret::bench_paradigms
