// The server's end of the RPC engine: one core's.
//
//   serve: what was posted has completed ─▶ one look at each client ─▶ (prefetch all) ─▶ execute each ─▶ flush
//                                            slot, ring or RECVs        handler          store, clear, post
//
// A client's request is cleared before its response goes: the client may then use the place again. Responses of one pass
// are collected for one doorbell (`Tuning::doorbell`) and posted when the pass ends: nothing waits for more of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench_paradigms/rpc/message.h"
#include "bench_paradigms/rpc/sender.h"

namespace egret::bench_paradigms {

// What both ends tell each other.
struct RpcNotice {
  RemoteMemory writable;       // server: requests; client: replies
  RemoteMemory readable;       // server: responses
  uint32_t pair = 0;           // connected
  uint32_t datagram_pair = 0;  // UD
  uint32_t request_bytes = 0;  // of the shape, to be equal
  uint32_t response_bytes = 0;
  uint32_t slots = 0;
  uint32_t unused = 0;
};

class RpcHandler {
 public:
  virtual ~RpcHandler() = default;
  // Executes a request, puts the response's body in place, returns its size; or kLater, and RpcServer::answer follows.
  virtual uint32_t handle(NodeId from, Bytes request, std::span<std::byte> response) = 0;
  // Before a pass that executes so many requests.
  virtual void begin_pass(uint32_t /*requests*/) {}
  // Tuning::prefetches: of each request of a pass, before the first is executed.
  virtual void prefetch(Bytes /*request*/) {}
  // What RpcServer::post has posted is done.
  virtual void posted(uint16_t /*user*/, bool /*is_ok*/) {}
};
inline constexpr uint32_t kLater = ~0u;

// A call that is being executed.
struct CallId {
  NodeId from = 0;
  Label label;
  bool wants_reply = false;
};

class RpcServer {
 public:
  RpcServer(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape);

  base::Status prepare();
  std::string notice(NodeId to);
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice);

  bool serve(RpcHandler& handler);

  // In handle(): the call. Its request and response stay valid until answer().
  const CallId& current() const { return current_; }
  std::span<std::byte> response(const CallId& call) const;
  void answer(const CallId& call, uint32_t bytes);
  // A WRITE or READ of the handler's own on the client's pair, before what is answered later. `user`: 0 asks for no completion.
  bool post(NodeId to, const Work& work, uint16_t user);

 private:
  // Of each slot of a client's.
  struct Slot {
    std::byte* request = nullptr;  // what is being executed
    uint32_t request_bytes = 0;
    uint32_t response_bytes = 0;
    uint8_t lap = kLaps;  // of the last call taken; kLaps: none
    bool is_answered = false;
  };
  struct Peer {
    std::unique_ptr<Pair> pair;
    Sender sender;
    std::unique_ptr<Memory> requests;
    std::unique_ptr<Memory> responses;
    std::byte* request_base = nullptr;
    RemoteMemory replies;
    std::unique_ptr<Way> way;
    uint32_t datagram_pair = 0;
    uint64_t calls = 0;      // taken; slots and rings
    uint32_t ring_at = 0;    // where the next message begins
    uint64_t looked_at = 0;  // kAdaptive: when, and the time before
    uint64_t looked_before = 0;
    std::vector<Slot> slots;
    bool is_broken = false;
  };
  struct Arrived {
    NodeId from = 0;
    Request request;
    std::byte* place = nullptr;
  };

  base::Status make_peer(NodeId client);
  base::Status make_datagrams();
  base::Status make_queues();
  Peer& peer(NodeId client) { return peers_[client - plan_.servers]; }
  const Peer& peer(NodeId client) const { return peers_[client - plan_.servers]; }
  Sender::Limits limits(bool is_datagram) const;
  uint32_t receives() const;  // RECVs for datagrams
  bool is_ready(const Peer& peer) const;
  bool is_idle() const;

  void reap(RpcHandler& handler);
  void look();
  void look_at(NodeId client);
  void receive();
  NodeId client_of(uint32_t datagram_pair) const;
  std::byte* receive_place(NodeId client, uint32_t index) const;
  bool post_receive(NodeId client, std::byte* place);
  void execute(const Arrived& arrived, RpcHandler& handler);
  void release(NodeId client, std::byte* place, uint32_t bytes);
  void respond(const CallId& call, Peer& peer, uint32_t bytes);
  void send_datagram(const Peer& peer, Work work);
  void flush();

  const Plan& plan_;
  Fabric& fabric_;
  RpcShape shape_;
  RpcLayout layout_;
  bool answers_again_;  // a request that comes twice is executed once
  base::SystemClock host_clock_;
  const base::Clock& clock_;
  std::unique_ptr<Memory> region_;  // right-aligned slots of all clients, as the paper has it; or RECVs of datagrams
  std::unique_ptr<Queue> send_queue_, receive_queue_;
  std::vector<std::unique_ptr<Pair>> datagrams_;
  std::vector<Sender> datagram_senders_;
  std::vector<std::pair<uint32_t, NodeId>> by_pair_;  // UD requests: sender's pair, client; sorted
  uint32_t turn_ = 0;                                 // of datagram_senders_: collects now
  std::vector<Peer> peers_;
  std::vector<Arrived> arrived_;
  CallId current_;
};

}  // namespace egret::bench_paradigms
