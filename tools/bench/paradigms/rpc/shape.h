// What an RPC looks like: which half carries its request, which half its response, and how large they are. Both ends make
// the same layout of it.
//
//   request:   kWriteSlot  WRITE into a slot of the client's      response:  kWrite     WRITE into the client's reply slot
//              kWriteRing  WRITE behind the one before, in a ring            kSend      SEND on the same pair
//              kSend       SEND on the client's pair                         kDatagram  SEND over UD
//              kDatagram   SEND over UD                                      kLeave     left in the server's memory: READ
//                                                                            kAdaptive  kLeave or kWrite, as the client asks
//
// A kWriteSlot over UC is HERD's: 1,024 bytes, right-aligned, its key last. Over RC it is Jakiro's: head, body, tail.
#pragma once

#include <cstdint>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

enum class RequestHalf : uint8_t { kWriteSlot, kWriteRing, kSend, kDatagram };
enum class ResponseHalf : uint8_t { kWrite, kSend, kDatagram, kLeave, kAdaptive };

struct RpcShape {
  RequestHalf request = RequestHalf::kWriteSlot;
  ResponseHalf response = ResponseHalf::kWrite;
  PairType request_pairs = PairType::kRc;  // RC or UC; what is READ or WRITten back goes the same way
  uint32_t request_bytes = 0;              // of the largest body
  uint32_t response_bytes = 0;             // of the largest body
  uint32_t slots = 1;                      // of each client: its calls under way, at most
  bool allows_inline = true;               // false: not even where Tuning::is_inline
  uint32_t fetch_bytes = 0;                // kLeave, kAdaptive: of a READ, the response's head included

  bool is_right_aligned() const { return request == RequestHalf::kWriteSlot && request_pairs == PairType::kUc; }
  bool has_connected() const { return request != RequestHalf::kDatagram || response != ResponseHalf::kDatagram; }
  bool has_datagrams() const { return request == RequestHalf::kDatagram || response == ResponseHalf::kDatagram; }
  bool may_lose() const { return has_datagrams() || request_pairs != PairType::kRc; }
  bool is_fetched() const { return response == ResponseHalf::kLeave || response == ResponseHalf::kAdaptive; }
  bool is_written_back() const { return response == ResponseHalf::kWrite || response == ResponseHalf::kAdaptive; }
  bool is_received() const { return response == ResponseHalf::kSend || response == ResponseHalf::kDatagram; }
};

inline constexpr uint32_t kMostSlots = 4096;
inline constexpr uint32_t kMostBody = 16'000;             // a flagged slot's head has 14 bits for the size
inline constexpr uint32_t kRightAlignedSlot = 1024;       // paper 001, section 4.2
inline constexpr uint32_t kRightAlignedBody = 1024;       // word and key included
inline constexpr uint64_t kCallPatienceNs = 100'000'000;  // then a call that may be lost is sent again, then given up

// A client's call number n, as far as it travels: n mod slots, and n / slots mod 16.
struct Label {
  uint16_t slot = 0;
  uint8_t lap = 0;
};
inline constexpr uint32_t kLaps = 16;
inline Label label_of(uint64_t call, uint32_t slots) {
  return {static_cast<uint16_t>(call % slots), static_cast<uint8_t>(call / slots % kLaps)};
}

// Where things lie. Strides keep slots on cache lines of their own.
struct RpcLayout {
  explicit RpcLayout(const RpcShape& shape, uint32_t pad);

  uint32_t request_stride;   // from slot to slot; kWriteRing: the largest message
  uint32_t ring_bytes;       // of a client's ring: it holds `slots` messages and what is left over where it wraps
  uint32_t response_head;    // bytes before the body
  uint32_t response_stride;  // from response to response
  uint32_t responses;        // buffers at the server for each client

  // kLeave: of call n's response. It is clean from when the server has executed call n - slots, which the client knows.
  uint32_t response_of(Label label, uint32_t slots) const { return (label.lap * slots + label.slot) % responses; }
};

}  // namespace egret::bench_paradigms
