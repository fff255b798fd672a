// How bytes of a session get from one side to the other. The transport knows neither ops nor slots: it moves ranges of
// two memories, wakes the other side and says when the peer is gone. Implementations: local/local.h (same process), shm.h
// (same host), verbs.h (RC queue pairs), tcp/tcp.h, and in tests/sim a network that tears and delays. Errors never throw; a broken endpoint reports
// kClosed once.
//
// The two memories of a session (a region), both made by the server's transport:
//   request memory    the client writes, the server reads
//   response memory   the server writes, the client reads
// Remote addresses are (memory, offset); offsets are what wire/slot.h computes.
//
// Life of an endpoint:
//   server  accepted → [prepare] → frames → let_join → create_region → send_frame(attach) → data phase → close → destroyed
//   client  connect  → frames → map_region    → send_frame(attach) → data phase → close → destroyed
// A client may send frames at once; they wait until it is connected. From send_frame(attach) on the
// control functions carry no more frames from the client; control_fd() still says when the peer is gone. Threads: the
// control functions belong to one thread, the data functions to one thread (the endpoint's home on the server, the
// worker on the client, where both are the same). Destroying needs both to have let go. What takes long, prepare(),
// create_region() and destroying, any thread may do, while no other uses the endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::op {
class DirectStore;  // passed on, from server to client
}

namespace egret::transport {

struct TlsOffer;  // address.h

// RegionShape::has_lane_rings is for sessions of no more lanes: each ring is a descriptor at both ends.
inline constexpr uint32_t kMostLaneRings = 32;

// The sizes of a region. The server chooses them; the client computes them from the grant.
struct RegionShape {
  uint32_t lanes = 0;            // rings and deliveries name one
  size_t request_bytes = 0;      // of request memory
  size_t response_bytes = 0;     // of response memory
  size_t reply_bytes = 0;        // of one response slot, the most that deliver() pushes; each lane has as many
  bool has_wake_timers = false;  // both sides know them: wire::kWakeTimers
  bool has_lane_rings = false;   // each lane has a timer of its own: wire::kLaneRings
};

// What poll() found.
struct Event {
  enum class Kind : uint8_t {
    kFetched,    // client: the read staged with `tag` is done: its range of response_image() holds what it saw
    kDelivered,  // client: the server pushed. `bytes` are of a response slot, and stay what they are until the server
                 // pushes that slot again; empty: fetch any lane
    kRing,       // server: the client asks that `lane` be looked at
    kClosed,     // the peer is gone or the endpoint broke; nothing follows
  };
  Kind kind = Kind::kClosed;
  uint32_t lane = 0;
  uint64_t tag = 0;
  std::span<const std::byte> bytes{};
};

// Serves a lane within its client's flush().
class FlushServer {
 public:
  // The client has written to the lane: its requests are to be executed before this returns, or later, in this thread.
  virtual void on_flush() = 0;
  // Of the endpoint's home: the client has rung for a lane that another thread serves, and poll() has it.
  virtual void on_ring() = 0;
  // What the client may call besides; null: nothing.
  virtual op::DirectStore* direct_store() { return nullptr; }

 protected:
  ~FlushServer() = default;
};

// What a server can know of a client that is a thread of the same process.
class SameProcess {
 public:
  // Whether it is the calling thread.
  virtual bool is_clients_thread() const = 0;
  // The partition whose thread is the client's, and which should be the endpoint's home; -1: none is.
  virtual int home() const = 0;
  // From now on the client's flush() calls `server` when it has written to `lane`; nobody rings for it, and the client
  // is not woken. Null: no longer. The client's thread alone.
  virtual void serve_at_flush(uint32_t lane, FlushServer* server) = 0;

 protected:
  ~SameProcess() = default;
};

// The properties of an endpoint; fixed when the region exists.
struct Limits {
  uint32_t read_depth = 0;  // reads that may be staged and not yet fetched
  bool deliver_is_wakeup =
      false;                // deliver() carries no bytes and any thread may call it; else only the endpoint's home may
  bool is_ordered = false;  // a reader that sees the first word of a write sees all of it, in both directions
  bool fetch_is_local = false;  // a read costs a cache miss, not a trip over the network
  bool ring_is_wakeup =
      false;  // server: a ring always shows at its descriptor, armed or not; else only poll() tells of it
  bool offers_wake_timers = false;  // client: its endpoint can do with wire::kWakeTimers
  bool offers_lane_rings = false;   // client: it can take wire::kLaneRings
  bool has_lane_rings =
      false;  // server, with its region: rings come to lane_fd(), poll_lane(); none to data_fd(), poll()
  // The server pushes every response, in the order of its lane; the client neither reads, wants nor rings, and `bytes`
  // of a delivery are in response_image(). data_fd() is a socket: poll() looks at it only after ready(). A lane is rung
  // by its requests themselves.
  bool results_are_pushed = false;
  bool sends_pieces = false;         // server: deliver_pieces() sends without a copy
  bool is_received_by_poll = false;  // server: request memory changes only within the home's poll()
  bool is_one_process = false;    // both ends are: requests are read in their slots, and results may lend (op/loan.h)
  bool needs_keep_alive = false;  // a peer that dies says nothing by itself: call keep_alive() every kKeepAliveNs
  std::string_view transport{};   // server: its name, one of transport_names()
  SameProcess* same_process = nullptr;  // server: its client is a thread of this process
};

inline constexpr uint64_t kKeepAliveNs = 500'000'000;

// Bytes of a response that lie elsewhere than in its slot.
struct Piece {
  size_t offset = 0;  // of their place in the response, in bytes from the beginning of its slot
  std::string_view bytes{};
};
inline void copy_pieces(std::byte* slot, std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) std::memcpy(slot + piece.offset, piece.bytes.data(), piece.bytes.size());
}

// Hears that poll() of an endpoint has something; on the thread that polls its group, within PollGroup::poll().
class ReadyListener {
 public:
  virtual void on_ready(uint64_t token) = 0;

 protected:
  ~ReadyListener() = default;
};

// What one thread polls and sleeps on, however many endpoints it has, where their transport lets them share that (verbs: a
// completion queue and its channel). Endpoints of other transports, and those that were made without a group, are polled
// and armed by themselves. Thread: its owner's, which polls until it is destroyed; its endpoints are destroyed before it.
class PollGroup {
 public:
  virtual ~PollGroup() = default;
  // Readable (level-triggered) when poll() may have something, if it was armed.
  virtual int fd() const = 0;
  // fd() is readable: to be called whenever it was seen to be, else it stays so.
  virtual void ready() = 0;
  // Takes what has come, and tells the listeners of the endpoints that it has come for. Whether there was anything.
  virtual bool poll() = 0;
  // What comes from now on makes fd() readable. To sleep: arm(), poll() once more, block. Costs nothing while it is armed.
  virtual void arm() = 0;
};

// The control channel of both kinds of endpoints: small whole frames, in order.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  // Whether prepare() is to be called before anything else but peer(), peer_group() and user(): it does what takes long
  // of making the connection. After an error of it: close(), and no more.
  virtual bool needs_preparing() const { return false; }
  virtual base::Status prepare() { return base::Status::ok(); }
  // Readable (level-triggered) when a frame or the peer's end has come.
  virtual int control_fd() const = 0;
  // Reads one frame, as many bytes as fit `frame`; sets `length`, 0 when none is there yet. An error: the peer is gone.
  virtual base::Status receive_frame(std::span<std::byte> frame, size_t& length) = 0;
  // Sends one frame at once. `attach`: what the transport must tell its twin travels along (server: the region's keys
  // or descriptors; client: its reply slots').
  virtual base::Status send_frame(std::span<const std::byte> frame, bool attach) = 0;
  // Facts for the log line of an open session: device, port, chosen sizes.
  virtual std::string facts() const { return {}; }
  // Why kClosed was reported.
  virtual std::string failure() const { return "the connection broke"; }
};

// What the thread of an endpoint's data does with either kind of it: looks, sleeps, wakes.
class DataChannel {
 public:
  virtual ~DataChannel() = default;
  // Puts up to events.size() events in `events`, returns how many.
  virtual size_t poll(std::span<Event> events) = 0;
  // Readable, edge-triggered, when poll() may have something that the peer caused (the client's: deliveries; the server's:
  // rings). arm() before blocking on it, then poll() once more. -1: it is in a PollGroup, which is polled, armed and waited
  // for instead.
  virtual int data_fd() const = 0;
  // In a PollGroup: whom it tells, by `token`, from the data phase on; null: nobody any more.
  virtual void set_listener(ReadyListener* /*listener*/, uint64_t /*token*/) {}
  virtual void arm() = 0;
  // Where results_are_pushed: data_fd() has become readable or, of the client, writable; the next poll() or arm() looks there.
  virtual void ready() {}
  // Where needs_keep_alive: makes sure that a dead peer shows as kClosed soon. Wakes nobody.
  virtual void keep_alive() {}
};

class ClientEndpoint : public ControlChannel, public DataChannel {
 public:
  // Call when the frame that carried the region has been received: makes both memories usable. The shape is the
  // client's own computation; a region of another size is refused.
  virtual base::Status map_region(const RegionShape& shape) = 0;
  // False: that goes on elsewhere. When it is done, or has failed, control_fd() becomes readable: an error is
  // receive_frame()'s.
  virtual bool is_mapped() const { return true; }
  // False: somebody else in this process has closed a descriptor of it, and its number is another file's by now. Sockets
  // are told from others at any time; epolls, eventfds and timers are not.
  virtual bool owns_descriptors() const { return true; }
  virtual const Limits& limits() const = 0;

  // Data. `request_image()` is where requests are encoded: the offset there is the offset in request memory. A range is
  // the transport's from stage_write() until the response to it has been seen.
  virtual std::byte* request_image() = 0;
  // Where fetched bytes are: the offset there is the offset in response memory. Racing memory on shm (the slot itself).
  virtual const std::byte* response_image() const = 0;
  // Stages a write of `length` bytes at `offset` (8-byte aligned), for `lane`: what is staged for one lane keeps its
  // order. The first 8 bytes are not taken from the image but
  // are `first_word`, and become visible no earlier than the rest where the transport can promise that.
  virtual void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) = 0;
  // The same, and rings, in one verb where the transport has such: when the server hears of it, the bytes are there.
  // Not overridden where every request rings by itself.
  virtual void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) {
    stage_write(lane, offset, length, first_word);
  }
  // Stages a read of response memory; it reports kFetched with `tag`. Reads of one flush see what is there after the
  // lane's writes.
  virtual void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) = 0;
  // Sends all that is staged: one doorbell. On shm: orders the writes before the reads (Dekker's fence).
  virtual void flush() = 0;
  // Of a lane that is served within flush(): what its server offers there (FlushServer::direct_store()). Null: it is served elsewhere.
  virtual op::DirectStore* direct_store(uint32_t /*lane*/) { return nullptr; }
  // Asks the server to look at `lane`: to be called when a fetch showed it asleep.
  virtual void ring(uint32_t lane) = 0;

  // After an error of receive_frame(): the backend has no time now, and asks to be tried again after so many
  // milliseconds, as it says (unchecked: any number). 0: it asks for nothing.
  virtual uint32_t come_back_ms() const { return 0; }
  // Disconnects and drops pending events. Memory stays valid until destruction.
  virtual void close() = 0;
};

// The user at the other end, where the transport knows users: the kernel's word.
struct PeerUser {
  uint32_t uid = 0;
  std::vector<uint32_t> gids;  // its own first, then the supplementary ones
};

class ServerEndpoint : public ControlChannel, public DataChannel {
 public:
  // Creates the region: zeroed, sealed, never moved.
  virtual base::Status create_region(const RegionShape& shape) = 0;
  virtual const Limits& limits() const = 0;
  // The peer, for logs: "uid 33 pid 812", or an address and a port.
  virtual const std::string& peer() const = 0;
  // Whose sessions count together against a quota: "uid 33", an address.
  virtual const std::string& peer_group() const { return peer(); }
  // Null: the transport knows no users.
  virtual const PeerUser* user() const { return nullptr; }

  // Where a connection has several parts (queue pairs): there is one until the peer is known to be who it should be.
  // From let_join() on it may add those that it has promised. When the last one is there, is_whole() holds and
  // control_fd() has become readable; only then may the region be created.
  virtual base::Status let_join() { return base::Status::ok(); }
  virtual bool is_whole() const { return true; }
  // The listener has asked the doorkeeper whether there is time for it (Doorkeeper::come_back_ms()).
  virtual bool is_admitted() const { return false; }
  // The peer adds its parts before it says anything, as in 0.1.0, and the doorkeeper asks for a proof: refuse it.
  virtual bool joins_too_early() const { return false; }

  // Data. Request memory is racing memory: only base/slot_copy.h may touch it. Response memory is written by the
  // partition that owns the lane, read by nobody else on this host but through the client's mapping.
  virtual const std::byte* request_memory() const = 0;
  virtual std::byte* response_memory() = 0;
  // The CPU on which the client's thread ran when it last flushed or rang, as it says (unchecked: any number); -1: it
  // does not say, or is on another host.
  virtual int client_cpu() const { return -1; }
  // Where has_lane_rings: what data_fd() and poll() are elsewhere, for the thread that serves `lane`. A ring shows whether
  // it is armed or not.
  virtual int lane_fd(uint32_t /*lane*/) const { return -1; }
  virtual size_t poll_lane(uint32_t /*lane*/, std::span<Event> /*events*/) { return 0; }
  // Pushes `length` bytes of response memory at `offset`, the beginning of a response slot, to the client and wakes it.
  // Of several that wait for the same slot one may be left out, if what goes out is the longest of them, as it is then.
  virtual void deliver(uint32_t lane, size_t offset, size_t length) = 0;
  // The same of a response whose slot lacks the bytes of `pieces`, which are in order and do not overlap. Where
  // sends_pieces, they are not to change before the next flush() returns, or the endpoint goes: what the socket has not
  // taken by then is in the slot.
  virtual void deliver_pieces(uint32_t lane, size_t offset, size_t length, std::span<const Piece> pieces) {
    copy_pieces(response_memory() + offset, pieces);
    deliver(lane, offset, length);
  }
  // Where results_are_pushed: sends what was delivered. False: the peer does not take all of it now; to be called again
  // when data_fd() is writable.
  virtual bool flush() { return true; }
  // Which of ListenOptions::groups it is in: the thread of that one must be its home. -1: in none.
  virtual int group() const { return -1; }
  virtual void close() = 0;
};

// Asked before anything is made for a new connection.
class Doorkeeper {
 public:
  // Whether the peer group may have one more connection now; if not, it is turned away.
  virtual bool lets_in(const std::string& peer_group) = 0;
  // One more part of a connection that was let in: it costs as much as a connection, and is not turned away.
  virtual void charge(const std::string& peer_group) = 0;
  // Where a newcomer can be told before anything is made for it: 0, there is time for it; else it is told to come back
  // after so many milliseconds. `came_back`: it has been told so before.
  virtual uint32_t come_back_ms(const std::string& /*peer_group*/, bool /*came_back*/) { return 0; }
  // Whether peers must prove who they are.
  virtual bool asks_for_proof() const = 0;

 protected:
  ~Doorkeeper() = default;
};

// Accepts connections at one address of a backend.
class Listener {
 public:
  virtual ~Listener() = default;
  // Whom accept() is to ask; null: nobody.
  virtual void set_doorkeeper(Doorkeeper* doorkeeper) = 0;
  virtual int fd() const = 0;  // readable (level-triggered) when accept() may have something
  // The next connection, null when none is waiting. An error tells of one connection that was turned away, or of a
  // condition that passes (too many open files).
  virtual base::Expected<std::unique_ptr<ServerEndpoint>> accept() = 0;
  // After an error: whether this host lacks a resource. Then call accept() again only after a pause, whether fd() is
  // readable or not.
  virtual bool needs_pause() const = 0;
  // Bytes of sessions that have ended and whose memory is not free, since their peers still have it open. To be asked
  // again and again while there are some: what a peer has let go of is freed by asking.
  virtual size_t kept_bytes() const { return 0; }
  // What is offered to new connections from now on: as in ListenOptions.
  virtual void offer(const TlsOffer& /*tls*/) {}
  // Who may connect from now on, where the transport knows users: as in ListenOptions.
  virtual void allow(const std::vector<uint32_t>& /*uids*/, const std::vector<uint32_t>& /*gids*/) {}
};

}  // namespace egret::transport
