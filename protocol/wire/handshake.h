// The frames that set up a session, before it has slots. They travel on the transport's control channel. The first 16
// bytes (FramePrefix) are the same in all versions.
//
//   client                        server
//     hello    ───────────────▶            worker id, window, offered features
//              ◀───────────────  challenge  \ only if both hold a secret
//     proof    ───────────────▶            / (proof.h)
//              ◀───────────────  grant     the session's parameters, with the region's keys; or
//              ◀───────────────  refusal   the reason; the channel then closes
//     ready    ───────────────▶            with the keys of the client's reply slots; the session is open
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "op/rights.h"
#include "wire/proof.h"
#include "wire/slot.h"

namespace egret::wire {

inline constexpr uint64_t kMagic = 0x31505746'54455247;  // "GRETFWP1"
inline constexpr uint16_t kVersion = 1;                  // our version; a server also serves the previous one
inline constexpr uint16_t kOldestVersion = 1;
inline constexpr size_t kMaxFrame = 512;

enum class FrameType : uint8_t {
  kHello = 1,
  kGrant = 2,
  kRefusal = 3,
  kReady = 4,
  kChallenge = 5,
  kProof = 6,
  // Between a proxy and its slot clients: pool_frames.h.
  kAsk = 7,
  kPool = 8,
  kMember = 9,
  kMemberState = 10,
};

struct FramePrefix {
  uint64_t magic;
  uint16_t version;
  uint8_t type;  // FrameType
  uint8_t reserved;
  uint32_t length;  // of the whole frame, this prefix included
};
static_assert(sizeof(FramePrefix) == 16);
static_assert(offsetof(FramePrefix, version) == 8 && offsetof(FramePrefix, type) == 10);
static_assert(offsetof(FramePrefix, length) == 12);

// Feature bits. The client offers them in its hello; the grant confirms those that the server uses.
// The client holds a secret: both sides prove that they hold it.
inline constexpr uint64_t kAuthenticate = 1;
// The transport is ordered (shared memory): a message whose seq is visible is whole, so checksums cover heads only.
inline constexpr uint64_t kOrderedMemory = 2;
// Over shared memory: both wake-ups are timerfds, which neither side can make block the other (transport/shm_wakeup.h).
// Without it the client rings an eventfd, as in version 0.1.0.
inline constexpr uint64_t kWakeTimers = 4;
// The client knows of rights: the grant says which the session has, and an op that needs another is answered
// kForbidden instead of kUnsupported.
inline constexpr uint64_t kRights = 8;
// The client says how large its slots should be at most.
inline constexpr uint64_t kSlotSizes = 16;
// The backend knows ops with an owner tag, and keeps what they change for the iterate's source 2.
inline constexpr uint64_t kFailover = 32;
// The backend knows the mode fill and the admin verbs warm and member.
inline constexpr uint64_t kWarm = 64;
// Over a network where results are fetched: requests may ask for their response to be pushed (kPush), and to be told
// when the lane falls asleep (kTellAsleep); responses have hints.
inline constexpr uint64_t kDeliver = 128;
// The client can be asked to come back: a refusal may say after how many milliseconds.
inline constexpr uint64_t kComeBack = 256;
// The client is a program that waits for its results itself (libegret), not a proxy: nobody else needs its CPU meanwhile, so
// its lanes are polled for longer before they fall asleep.
inline constexpr uint64_t kEmbedded = 512;
// The client takes response slots of up to kMaxLongSlotSize.
inline constexpr uint64_t kLongSlots = 1024;
// Over shared memory, with kWakeTimers: each of up to 32 lanes has a timer of its own, which wakes its partition
// alone. Without it one timer wakes the session's home, which tells the lane's partition.
inline constexpr uint64_t kLaneRings = 2048;
// A session with a member of a pool through a proxy: results may say that no answer came from the backend, and why.
inline constexpr uint64_t kRelayed = 65536;

struct Hello {
  uint64_t features = 0;  // feature bits that the client supports; the grant has those that both support
  // Random, the same for the worker's life: a new session replaces the worker's old one. A session that is to take the
  // place of an open one, with another size, has the id that differs in the lowest bit.
  uint64_t worker_id = 0;
  uint32_t window = 0;     // wanted slots per lane; the server may grant fewer
  HandshakeNonce nonce{};  // kAuthenticate only
  // kSlotSizes only: wanted; the server grants no more (but the least there is), and perhaps less. 0: as it likes.
  uint32_t request_slot_size = 0;
  uint32_t response_slot_size = 0;
  uint32_t asked_back = 0;  // kComeBack only: how often in a row the backend has asked this worker to come back
  uint64_t member = 0;      // kRelayed only: the tag of the member's name
};

struct Challenge {
  HandshakeNonce nonce{};
};

struct ClientProof {
  Proof proof{};
};

struct Grant {
  uint64_t features = 0;  // the offered ones that the server uses
  uint64_t session_id = 0;
  uint64_t nonce = 0;      // seeds this session's checksums
  uint64_t epoch = 0;      // of the backend process: a new epoch means an empty store
  uint64_t hash_seed = 0;  // for hash_key()
  uint32_t item_size_max = 0;
  RegionLayout layout;
  Proof proof{};          // kAuthenticate only: the server's
  op::Rights rights = 0;  // kRights only
};
inline constexpr size_t kGrantProofOffset = sizeof(FramePrefix) + 60;  // in the frame

struct Refusal {
  std::string reason;
  uint32_t come_back_ms = 0;  // kComeBack only: try again after so long; 0: the backend asks for nothing
};

struct Ready {};

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Challenge& challenge);
std::vector<std::byte> encode(const ClientProof& proof);
std::vector<std::byte> encode(const Grant& grant);
std::vector<std::byte> encode(const Refusal& refusal);
std::vector<std::byte> encode(const Ready& ready);

// Checks the prefix and returns the type in `type`. False, with a reason in `error`: we cannot read this frame.
// `longest`: bytes that a frame may have.
bool decode_prefix(std::span<const std::byte> frame, FrameType& type, std::string& error, size_t longest = kMaxFrame);
// Each checks everything it reads; false when the frame is malformed.
bool decode(std::span<const std::byte> frame, Hello& hello);
bool decode(std::span<const std::byte> frame, Challenge& challenge);
bool decode(std::span<const std::byte> frame, ClientProof& proof);
bool decode(std::span<const std::byte> frame, Grant& grant);
bool decode(std::span<const std::byte> frame, Refusal& refusal);

}  // namespace egret::wire
