// A session with an unmodified egret-backend, spoken byte by byte: how a peer that knows the format connects, shakes
// hands, and uses its slots. Frames and offsets are protocol/wire's; what the verbs transport adds (private data, the
// heads of frames, keys) is written out here a second time, so that a change of the format is noticed.
//
//   Opening: connect ─ say(hello) ─▶ hear() = grant and the region's keys ─ say(ready, reply keys) ─▶ Session
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "op/op.h"
#include "wire/handshake.h"

namespace egret::hostile {

// Private data of the connection request, and of its acceptance.
struct ConnectWords {
  uint32_t magic = 0x43544745;
  uint8_t version = 1;
  uint8_t index = 0;
  uint8_t queue_pairs = 1;
  uint8_t flags = 0;  // 1: the others join when they are invited
  uint64_t token = 0;
};
struct AcceptWords {
  uint32_t magic = 0;
  uint8_t version = 0;
  uint8_t read_depth = 0;
  uint8_t flags = 0;
  uint8_t reserved = 0;
  uint64_t token = 0;
};
// Behind a head that tells of a frame of no bytes.
struct InvitationWords {
  uint64_t token = 0;
  uint32_t queue_pairs = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(ConnectWords) == 16 && sizeof(AcceptWords) == 16 && sizeof(InvitationWords) == 16);

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  return {at, at + sizeof value};
}

std::unique_ptr<Connection> connect(const sockaddr_in& target, const ConnectWords& words = {},
                                    size_t receives = Connection::kReceives, const sockaddr_in* source = nullptr);
AcceptWords accept_words(const Connection& connection);

// A frame as it travels: lengths of frame and attachment, then both.
std::vector<std::byte> framed(const std::vector<std::byte>& frame, const std::vector<std::byte>& attachment = {});
// Sends the bytes as one message; how that ended.
ibv_wc_status say(Connection& connection, const std::vector<std::byte>& message);

wire::Hello new_hello();  // of a worker nobody has heard of

// The backend's secret, from the environment (EGRET_HOSTILE_SECRET); none set: it has none.
base::Secret known_secret();
// The next message of the backend: a frame, and what is attached to it.
struct Message {
  std::vector<std::byte> frame, attachment;
  wire::FrameType type() const;  // throws if it is none
};
Message hear(Connection& connection);
// Says hello, and proves to hold the secret if there is one. A wrong secret: what an impostor does.
void introduce(Connection& connection, const base::Secret& secret = known_secret());

struct Granted {
  wire::Grant grant;
  RemoteMemory requests, responses;
};
// The next message. Throws if it is no grant.
Granted hear_grant(Connection& connection);

// A session from hello to ready; throws if it is refused. The reply slots are the connection's own unless told
// otherwise; `replies` with no bytes: ready is not said.
class Session {
 public:
  explicit Session(const sockaddr_in& target, std::optional<RemoteMemory> replies = {},
                   size_t receives = Connection::kReceives);

  Connection& connection() { return *connection_; }
  const wire::RegionLayout& layout() const { return granted_.grant.layout; }
  const RemoteMemory& requests() const { return granted_.requests; }
  const RemoteMemory& responses() const { return granted_.responses; }
  RemoteMemory replies();

  uint32_t lane_of(std::string_view key) const;
  // A message with the right checksum, whatever is in it. `length`: what the header says, else the body's.
  std::vector<std::byte> message(uint64_t seq, const std::vector<std::byte>& body, uint16_t ops,
                                 std::optional<uint32_t> length = {}) const;
  std::vector<std::byte> message(uint64_t seq, const op::Op& op) const;
  // WRITEs it to the slot of that seq; `at`: in the memory to send from, which holds it until the verb is finished.
  void write(uint32_t lane, uint64_t seq, const std::vector<std::byte>& message, size_t at = 0);
  void want(uint32_t lane, uint64_t seq);
  void ring(uint32_t lane) { connection_->post({.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .immediate = lane}); }
  // One op as an honest client has it executed, ringing if the lane sleeps. Throws if no answer comes.
  op::ResultCode call(uint32_t lane, const op::Op& op);
  // The same, in the key's lane; `value` is the result's.
  op::ResultCode call(const op::Op& op) { return call(lane_of(op.key), op); }
  const std::string& value() const { return value_; }
  uint64_t next_seq(uint32_t lane) { return next_seq_.at(lane); }
  // Seqs up to here were used by other means than call().
  void skip_to(uint32_t lane, uint64_t next) { next_seq_.at(lane) = next; }
  // Whether the response to that seq is there; rings if the lane sleeps before it.
  bool is_answered(uint32_t lane, uint64_t seq);

 private:
  std::unique_ptr<Connection> connection_;
  Granted granted_;
  std::vector<uint64_t> next_seq_;
  std::string value_;
};

op::Op set(std::string_view key, std::string_view value);
op::Op get(std::string_view key);

}  // namespace egret::hostile
