// Slots and messages of this program: the same head as protocol/wire has in spirit (seq, checksum, asleep, length), cut
// down to what the handshakes need. Owns no memory.
//
//   request memory    one line per lane (want), then lanes × window slots     client WRITEs, partitions read
//   response memory   lanes × window slots                                    partitions write, client READs
//   reply memory      a mirror of response memory at the client               home WRITEs (deliver), client reads
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace egret::handshakes {

struct Header {
  uint64_t seq;       // per lane, from 1
  uint64_t checksum;  // XXH3 over length and body, seeded with nonce ^ seq
  uint64_t asleep;    // responses, outside the checksum: the seq that the lane expects and no longer polls for
  uint32_t length;    // bytes of body
  uint32_t reserved;
};
static_assert(sizeof(Header) == 32);

inline constexpr size_t kSlotBytes = 2048;  // two packets and more at a path MTU of 1024: a WRITE can be seen torn
inline constexpr size_t kMaxBody = kSlotBytes - sizeof(Header);
inline constexpr size_t kLineBytes = 64;

struct Layout {
  uint32_t lanes = 0;
  uint32_t window = 0;

  uint32_t slots() const { return lanes * window; }
  uint32_t slot(uint32_t lane, uint64_t seq) const { return lane * window + static_cast<uint32_t>(seq % window); }
  size_t want_offset(uint32_t lane) const { return lane * kLineBytes; }
  size_t request_offset(uint32_t slot) const { return lanes * kLineBytes + slot * kSlotBytes; }
  size_t response_offset(uint32_t slot) const { return slot * kSlotBytes; }
  size_t request_bytes() const { return request_offset(slots()); }
  size_t response_bytes() const { return response_offset(slots()); }
};

// Words that the other side looks at or writes while we do.
inline uint64_t observe_word(const void* at) {
  return __atomic_load_n(static_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
}
inline void publish_word(void* at, uint64_t value) {
  __atomic_store_n(static_cast<uint64_t*>(at), value, __ATOMIC_RELEASE);
}
inline void full_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// A private copy of a message, and what a look at its slot found.
struct Message {
  Header header;
  std::byte body[kMaxBody];
  std::span<const std::byte> bytes() const { return {body, header.length}; }
};

enum class Seen : uint8_t {
  kNotYet,  // another seq stands there
  kTorn,    // the expected seq with a checksum that does not match: look again
  kWhole,
};

// Copies the slot, then judges the copy. With check == false a torn message passes for whole (Omit::kChecksum).
Seen look(const std::byte* slot, uint64_t expected_seq, uint64_t nonce, bool check, Message& copy);

// Fills in length and checksum of a message whose body and seq stand.
void seal(Message& message, uint64_t nonce);

// What is asked and what must be answered: both sides compute them, so a client can tell a wrong result from a right
// one.
void make_request(uint64_t nonce, uint32_t lane, uint64_t seq, Message& request);
void make_response(uint64_t nonce, uint32_t lane, const Message& request, Message& response);

}  // namespace egret::handshakes
