#include "bench_paradigms/rpc/message.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace egret::bench_paradigms {

namespace {

constexpr uint16_t kArrived = 0x8000;
constexpr uint16_t kWantsReply = 0x4000;
constexpr uint16_t kRequestSize = 0x3fff;
constexpr uint16_t kDone = 0x8000;
constexpr std::byte kTailFlag{1};
constexpr uint32_t kRingWantsReply = 0x8000;  // sizes are below kMostBody

// The device writes these; a load that sees them sees what was placed before.
template <typename T>
T load(const std::byte* from) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(from))).load(std::memory_order_acquire);
}
template <typename T>
void store(std::byte* to, T value) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(to)).store(value, std::memory_order_release);
}

uint16_t pack(Label label) {
  return static_cast<uint16_t>(label.slot << 4 | label.lap);
}
Label unpack(uint16_t packed) {
  return {static_cast<uint16_t>(packed >> 4), static_cast<uint8_t>(packed & 15)};
}
uint32_t aligned(uint32_t bytes, uint32_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

RpcLayout::RpcLayout(const RpcShape& shape, uint32_t pad) {
  request_stride = shape.is_right_aligned() ? kRightAlignedSlot : aligned(2 + shape.request_bytes + 1, 64);
  if (shape.request == RequestHalf::kWriteRing) request_stride = aligned(4 + shape.request_bytes + 2, 8);
  ring_bytes = (shape.slots + 1) * request_stride;
  response_head = shape.response == ResponseHalf::kAdaptive ? 4 : 2;
  response_stride = aligned(response_head + shape.response_bytes + 1 + pad, 64);
  // Paper 004 has 8 for a client that makes one call at a time. Twice the calls under way are needed.
  responses = shape.is_fetched() ? std::max(8u, 2 * shape.slots) : shape.slots;
}

// --- requests

Cut write_flagged(std::byte* slot, Bytes body, bool wants_reply) {
  const auto size = static_cast<uint16_t>(body.size());
  store<uint16_t>(slot, static_cast<uint16_t>(kArrived | (wants_reply ? kWantsReply : 0) | size));
  std::memcpy(slot + 2, body.data(), size);
  slot[2 + size] = kTailFlag;
  return {0, 2u + size + 1};
}

std::optional<Request> look_flagged(const std::byte* slot, uint32_t most) {
  const auto head = load<uint16_t>(slot);
  const uint32_t size = head & kRequestSize;
  if ((head & kArrived) == 0 || size > most) return std::nullopt;
  if (load<uint8_t>(slot + 2 + size) != static_cast<uint8_t>(kTailFlag)) return std::nullopt;
  return Request{{slot + 2, size}, {}, (head & kWantsReply) != 0, 2 + size + 1};
}

// All of it: the next one's tail may come to lie where this one's body was.
void clear_flagged(std::byte* slot, uint32_t bytes) {
  std::memset(slot, 0, bytes);
}

Cut write_right_aligned(std::byte* slot, Bytes body, Label label) {
  const auto size = static_cast<uint32_t>(body.size());
  std::byte* const begin = slot + kRightAlignedSlot - size;
  std::memcpy(begin, body.data(), size);
  std::byte* const word = slot + kRightAlignedSlot - 18;
  word[1] = (word[1] & std::byte{0x0f}) | static_cast<std::byte>(label.lap << 4);
  return {kRightAlignedSlot - size, size};
}

// By the last byte alone: a device may place a WRITE byte by byte, as Soft-RoCE does.
std::optional<Request> look_right_aligned(const std::byte* slot, uint16_t slot_number) {
  if (load<uint8_t>(slot + kRightAlignedSlot - 1) == 0) return std::nullopt;
  const auto lap = static_cast<uint8_t>(slot[kRightAlignedSlot - 17]) >> 4;
  return Request{{slot, kRightAlignedSlot}, {slot_number, static_cast<uint8_t>(lap)}, false, kRightAlignedSlot};
}

void clear_right_aligned(std::byte* slot) {
  store<uint64_t>(slot + kRightAlignedSlot - 8, 0);
}

Cut write_in_ring(std::byte* at, Bytes body, Label label, bool wants_reply) {
  const auto size = static_cast<uint32_t>(body.size());
  const uint16_t mark = pack(label);
  store<uint32_t>(at, uint32_t{mark} << 16 | (wants_reply ? kRingWantsReply : 0) | (size + 1));
  std::memcpy(at + 4, body.data(), size);
  const auto tail = static_cast<uint16_t>(mark + 1);
  std::memcpy(at + 4 + size, &tail, sizeof tail);
  return {0, 4 + size + 2};
}

std::optional<Request> look_in_ring(const std::byte* at, uint32_t most, Label expected) {
  const auto head = load<uint32_t>(at);
  const uint32_t size = (head & (kRingWantsReply - 1)) - 1;
  if (head == 0 || head >> 16 != pack(expected) || size > most) return std::nullopt;
  const std::byte* const end = at + 4 + size;
  const auto tail = static_cast<uint16_t>(load<uint8_t>(end) | load<uint8_t>(end + 1) << 8);
  if (tail != static_cast<uint16_t>(pack(expected) + 1)) return std::nullopt;
  return Request{{at + 4, size}, expected, (head & kRingWantsReply) != 0, 4 + size + 2};
}

void write_label(std::byte* to, Label label) {
  const uint16_t packed = pack(label);
  std::memcpy(to, &packed, sizeof packed);
}

Label read_label(const std::byte* from) {
  uint16_t packed = 0;
  std::memcpy(&packed, from, sizeof packed);
  return unpack(packed);
}

uint32_t to_immediate(Label label, Bytes body) {
  return uint32_t{pack(label)} << 16 | std::to_integer<uint32_t>(body[0]) << 8 | std::to_integer<uint32_t>(body[1]);
}

Label from_immediate(uint32_t immediate, std::byte* body) {
  body[0] = static_cast<std::byte>(immediate >> 8 & 0xff);
  body[1] = static_cast<std::byte>(immediate & 0xff);
  return unpack(static_cast<uint16_t>(immediate >> 16));
}

// --- responses

uint32_t seal_response(std::byte* slot, uint32_t head, Response response, uint8_t lap) {
  if (head > 2) std::memcpy(slot + 2, &response.time, sizeof response.time);
  slot[head + response.size] = static_cast<std::byte>(1 + lap);
  store<uint16_t>(slot, static_cast<uint16_t>(kDone | response.size));
  return head + response.size + 1;
}

void clear_response(std::byte* slot) {
  store<uint16_t>(slot, 0);
}

std::optional<Response> look_response(const std::byte* slot, uint32_t head) {
  const auto done = load<uint16_t>(slot);
  if ((done & kDone) == 0) return std::nullopt;
  Response response{static_cast<uint32_t>(done & ~kDone), 0};
  if (head > 2) std::memcpy(&response.time, slot + 2, sizeof response.time);
  return response;
}

bool has_tail(const std::byte* slot, uint32_t head, uint32_t size, uint8_t lap) {
  return load<uint8_t>(slot + head + size) == 1 + lap;
}

}  // namespace egret::bench_paradigms
