// The layout of a session's region: the place of each slot, and the head of the message in it. README.md in this folder
// is the format document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace egret::wire {

// Head of a request, at the start of its slot. The ops follow at once.
struct RequestHeader {
  // Counts per lane from 1. Message seq lies in slot seq mod window. On shm the seq becomes visible last.
  uint64_t seq;
  uint64_t checksum;  // the Seal's, over everything from `length` to the end of the body, or of the head
  uint32_t length;    // bytes of body
  uint16_t op_count;  // 1..kMaxOpsPerMessage
  uint16_t flags;     // kPush, kTellAsleep: only where kDeliver was agreed
};
static_assert(sizeof(RequestHeader) == 24);
static_assert(offsetof(RequestHeader, checksum) == 8 && offsetof(RequestHeader, length) == 16);
static_assert(offsetof(RequestHeader, op_count) == 20 && offsetof(RequestHeader, flags) == 22);

// Flags of a request.
inline constexpr uint16_t kPush = 1;  // the response is to be pushed, whatever `want` says
// If the lane falls asleep before it has the next message, the head of the next response slot, with its `asleep`, is to
// be pushed.
inline constexpr uint16_t kTellAsleep = 2;
inline constexpr uint16_t kRequestFlags = kPush | kTellAsleep;

// Head of a response, at the start of its slot. The results follow at once.
struct ResponseHeader {
  uint64_t seq;       // that of the request answered
  uint64_t checksum;  // the Seal's, over everything from `length` to the end of the body, or of the head
  uint64_t asleep;    // not in the checksum: when the partition stops polling the lane, the seq that it expects next
  uint32_t length;    // bytes of body
  uint16_t result_count;   // as many as the request had ops
  uint8_t status;          // 0 in this version: one result for each op follows
  uint8_t hints;           // kPushingIsCheap, kLaneSlept: only where kDeliver was agreed
  uint32_t processing_ns;  // from when the partition saw the request to when it published the response; may be 0
  uint32_t reserved;       // 0
};
static_assert(sizeof(ResponseHeader) == 40);
static_assert(offsetof(ResponseHeader, asleep) == 16 && offsetof(ResponseHeader, length) == 24);
static_assert(offsetof(ResponseHeader, result_count) == 28 && offsetof(ResponseHeader, status) == 30);
static_assert(offsetof(ResponseHeader, hints) == 31 && offsetof(ResponseHeader, processing_ns) == 32);

// Hints of a response.
inline constexpr uint8_t kPushingIsCheap = 1;  // the partition has time for pushing results, or many sessions
inline constexpr uint8_t kLaneSlept = 2;       // the lane was asleep when this message came
inline constexpr uint8_t kResponseHints = kPushingIsCheap | kLaneSlept;

// Offset at which the checksummed part of each message starts.
inline constexpr size_t kRequestChecked = offsetof(RequestHeader, length);
inline constexpr size_t kResponseChecked = offsetof(ResponseHeader, length);

// One line per lane, at the start of request memory. The client writes it.
struct LaneLine {
  uint64_t want;  // the highest seq whose response the client wants delivered; 0: none
  uint64_t reserved[7];
};
static_assert(sizeof(LaneLine) == 64);

inline constexpr uint32_t kMaxOpsPerMessage = 256;
inline constexpr uint32_t kMinSlotSize = 1024;
inline constexpr uint32_t kMaxSlotSize = 64 * 1024;       // of a request slot; of a response slot without kLongSlots
inline constexpr uint32_t kMaxLongSlotSize = 192 * 1024;  // of a response slot
inline constexpr uint32_t kMinWindow = 2;
inline constexpr uint32_t kMaxWindow = 64;
inline constexpr uint32_t kMaxLanes = 256;

// The shape of a region, agreed in the handshake. Both sides compute every offset from it. All methods are pure.
struct RegionLayout {
  uint32_t lanes = 0;   // = partitions of the backend
  uint32_t window = 0;  // slots per lane
  uint32_t request_slot_size = 0;
  uint32_t response_slot_size = 0;

  bool is_valid() const;
  size_t request_bytes() const { return lanes * (sizeof(LaneLine) + size_t{window} * request_slot_size); }
  size_t response_bytes() const { return size_t{lanes} * window * response_slot_size; }
  size_t bytes() const { return request_bytes() + response_bytes(); }
  size_t want_offset(uint32_t lane) const { return lane * sizeof(LaneLine); }
  // seq mod window, without a division where the window is a power of two, as most are: several are needed for each message.
  uint32_t slot_of(uint64_t seq) const {
    const uint32_t mask = window - 1;
    return static_cast<uint32_t>((window & mask) == 0 ? seq & mask : seq % window);
  }
  size_t request_offset(uint32_t lane, uint64_t seq) const {
    return lanes * sizeof(LaneLine) + (size_t{lane} * window + slot_of(seq)) * request_slot_size;
  }
  size_t response_offset(uint32_t lane, uint64_t seq) const {
    return (size_t{lane} * window + slot_of(seq)) * response_slot_size;
  }
  std::string to_string() const;
};

// XXH3-64 of `length` bytes at `checked`, seeded with the session's nonce and the seq: a torn message, or one of
// another session or seq, does not match.
uint64_t message_checksum(const std::byte* checked, size_t length, uint64_t nonce, uint64_t seq);

// Bytes of each head that the checksum covers.
inline constexpr size_t kRequestHeadChecked = sizeof(RequestHeader) - kRequestChecked;
inline constexpr size_t kResponseHeadChecked = sizeof(ResponseHeader) - kResponseChecked;

// How the messages of one session are sealed, as agreed in its handshake.
struct Seal {
  uint64_t nonce = 0;
  bool heads_only = false;  // kOrderedMemory: a reader that sees the seq sees the whole body

  // The checksum of `head` bytes at `checked` and the `body` bytes that follow them.
  uint64_t checksum(const std::byte* checked, size_t head, size_t body, uint64_t seq) const {
    return message_checksum(checked, heads_only ? head : head + body, nonce, seq);
  }
};

std::string to_string(const RequestHeader& header);
std::string to_string(const ResponseHeader& header);

}  // namespace egret::wire
