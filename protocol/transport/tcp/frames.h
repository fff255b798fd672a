// What crosses a TCP connection: frames, each a head and a body. README.md in this folder has the format.
//
//   FrameWriter   frames that wait for the socket: their heads, and pointers to their bodies or to pieces of bodies.
//                 flush() sends them all.
//   FrameReader   bytes from the socket → whole frames in the memory that a FrameSink names. Incremental: a frame may
//                 come in any number of pieces, and pieces may hold any number of frames.
//
// A body goes from the socket to its place with at most one copy, and its first word is published last: another thread
// that sees the word sees the body. Thread: one at a time. Neither allocates after it was set up, but for a writer's first
// pieces. The peer's bytes are checked here (heads) and by the sink (places); nothing else is assumed of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/status.h"
#include "transport/tcp/channel.h"
#include "transport/transport.h"

namespace egret::transport::tcp {

enum class FrameKind : uint8_t {
  kControl = 1,   // a frame of the handshake
  kRegion = 2,    // server: Region, before the control frame that carries the grant
  kRequest = 3,   // client: bytes for request memory
  kResponse = 4,  // server: bytes for response memory
  kRing = 5,      // client: look at `lane`; no body
};

struct FrameHead {
  FrameKind kind = FrameKind::kControl;
  uint8_t reserved = 0;
  uint16_t lane = 0;
  uint32_t offset = 0;  // in request or response memory; a multiple of 8
  uint32_t length = 0;  // of the body
};
static_assert(sizeof(FrameHead) == 12 && offsetof(FrameHead, lane) == 2);
static_assert(offsetof(FrameHead, offset) == 4 && offsetof(FrameHead, length) == 8);

// The sizes of the server's region, which the client compares with its own computation.
struct Region {
  uint64_t request_bytes = 0;
  uint64_t response_bytes = 0;
  uint32_t lanes = 0;
  uint32_t reply_bytes = 0;
  bool operator==(const Region&) const = default;
};
static_assert(sizeof(Region) == 24);
Region region_of(const RegionShape& shape);

inline constexpr size_t kMaxControl = 512;  // wire::kMaxFrame

// Whether a peer of a session of this shape may send such a frame: its lane and all of its body are inside.
bool is_request(const RegionShape& shape, const FrameHead& head);
bool is_response(const RegionShape& shape, const FrameHead& head);
bool is_ring(const RegionShape& shape, const FrameHead& head);

class FrameSink {
 public:
  // Where the body of this frame goes, 8-byte aligned. Null: no peer in its right mind sends that.
  virtual std::byte* place_of(const FrameHead& head) = 0;
  // The frame is whole. False: it is not acceptable.
  virtual bool take(const FrameHead& head) = 0;

 protected:
  ~FrameSink() = default;
};

class FrameReader {
 public:
  enum class Found : uint8_t {
    kNothing,    // nothing more is there now
    kFrame,      // read_one(): one whole frame
    kMore,       // read_some(): something came, and more may be there
    kEnd,        // the peer closed, or the connection broke: failure()
    kViolation,  // the peer sent what it must not
  };

  // Reads one frame and nothing beyond it: while others may still read the channel afterwards.
  Found read_one(Channel& channel, FrameSink& sink);
  // Reads what one system call gives.
  Found read_some(Channel& channel, FrameSink& sink);
  // For tests: as if the socket had given these bytes. False: a violation.
  bool consume(std::span<const std::byte> bytes, FrameSink& sink);
  // Whether a part of a frame's body has come.
  bool is_in_body() const { return head_have_ == sizeof(FrameHead); }
  const std::string& failure() const { return failure_; }
  // Whether it is that the peer closed the connection, or has reset it.
  bool has_peer_closed() const { return has_peer_closed_; }
  // After a violation: the peer has begun with a TLS handshake.
  bool is_tls() const { return static_cast<uint8_t>(head_.kind) == kTlsHandshake; }
  static constexpr uint8_t kTlsHandshake = 22;  // the first byte of one

 private:
  Found read_tls(Channel& channel, FrameSink& sink);
  size_t missing() const { return is_in_body() ? head_.length - body_have_ : sizeof(FrameHead) - head_have_; }
  bool begin_body(FrameSink& sink);
  bool end_body(FrameSink& sink);
  void add_body(std::span<const std::byte> bytes);
  Found ended(ssize_t got, const Channel& channel);

  FrameHead head_;
  size_t head_have_ = 0;
  size_t body_have_ = 0;
  uint64_t since_long_ = UINT32_MAX;  // frames since one with a long body
  std::byte* place_ = nullptr;
  alignas(uint64_t) std::array<std::byte, sizeof(uint64_t)> first_word_{};  // of the body, until all of it is there
  std::string failure_;
  bool has_peer_closed_ = false;
};

class FrameWriter {
 public:
  // From then on so many frames may wait.
  void set_capacity(size_t frames) { entries_.resize(frames); }
  // The body stays where it is until the frame is sent. False: too many wait.
  bool add(const FrameHead& head, const std::byte* body);
  // The same of a body that lacks the bytes of `pieces`; these stay until the next flush() returns, and what the socket
  // has not taken by then is copied into the body.
  bool add(const FrameHead& head, std::byte* body, std::span<const Piece> pieces);
  bool is_empty() const { return count_ == 0; }

  enum class Sent : uint8_t { kAll, kBlocked, kFailed };
  // Sends what the socket takes: one system call for up to kFramesAtOnce frames, or, with TLS, kGathered bytes.
  Sent flush(Channel& channel);

 private:
  static constexpr size_t kFramesAtOnce = 64;
  static constexpr size_t kMostPieces = 128;  // noted for all waiting frames together; further ones are copied
  static constexpr size_t kMostVectors = 2 + 2 * kMostPieces;  // in one system call
  struct Entry {
    FrameHead head;
    const std::byte* body = nullptr;
    std::byte* lacking = nullptr;  // the body again, if it lacks pieces_[first_piece …]
    uint32_t first_piece = 0;
    uint32_t piece_count = 0;
    size_t bytes() const { return sizeof head + head.length; }
    size_t most_vectors() const { return 2 + 2 * size_t{piece_count}; }
  };
  Entry& at(size_t index) { return entries_[(first_ + index) % entries_.size()]; }
  std::span<const Piece> pieces_of(const Entry& entry) const {
    return std::span(pieces_).subspan(entry.first_piece, entry.piece_count);
  }
  std::span<const iovec> vectors_of(Entry& entry, size_t done, std::span<iovec> into) const;
  void drop(size_t bytes);
  Sent send_all(Channel& channel);
  Sent send_all_tls(Channel& channel);
  size_t gather(std::span<std::byte> into);
  void end_pieces();

  std::vector<Entry> entries_;  // a ring
  std::vector<Piece> pieces_;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t sent_ = 0;  // bytes of the first entry
};

// A frame of the handshake, at once and whole; `region` before it, if there is one.
base::Status send_control(Channel& channel, std::span<const std::byte> frame, const Region* region);

// Memory of zeroes that stays where it is.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;
  ~ZeroedMemory();

  base::Status create(size_t bytes);
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// No delay, and what finds a dead peer. Errors are ignored: it works without.
void set_options(int socket);
// "10.0.0.1", and with its port.
std::string host_of(const sockaddr_storage& address);
std::string name_of(const sockaddr_storage& address);

}  // namespace egret::transport::tcp
