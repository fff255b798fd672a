// The client's end of the RPC engine: one thread's. A lane to each server core.
//
//   call ─▶ staged in the call's buffer ─▶ WRITE or SEND ─▶ poll: looks into reply slots, READs what was left, takes RECVs
//                                                        ─▶ Reply: answered, lost or failed
//
// What may be lost is sent again after kCallPatienceNs, and reported lost after as much again. Where nothing is lost but a
// dead server says nothing, a WRITE of no bytes asks after the same time whether the pair still works.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench_paradigms/rpc/message.h"
#include "bench_paradigms/rpc/sender.h"
#include "bench_paradigms/rpc/server.h"

namespace egret::bench_paradigms {

enum class ReplyState : uint8_t {
  kAnswered,
  kLost,    // nothing came in time; whether it was executed is not known
  kFailed,  // the session is broken
};
struct Reply {
  uint64_t ticket = 0;
  ReplyState state = ReplyState::kFailed;
  Bytes response;  // valid until the next call of call() or poll()
};

class RpcClient {
 public:
  RpcClient(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape);

  base::Status prepare();
  std::string notice(NodeId to);
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice);

  // False: no room now. The request may go after it.
  bool call(NodeId server, Bytes request, uint64_t ticket);
  uint32_t poll(std::span<Reply> out);
  Trouble trouble() const { return trouble_; }

 private:
  enum class State : uint8_t {
    kFree,
    kWaiting,   // under way
    kAnswered,  // its response is here
    kGiven,     // and given out
    kDraining,  // it was sent twice: a second response may come, and the place stays its own until then
  };
  struct Call {
    State state = State::kFree;
    bool is_sent_again = false;
    bool is_by_write = false;  // kAdaptive: its response is WRITten
    bool is_reading = false;
    Label label;
    Cut staged;
    uint32_t vain = 0;
    uint32_t fetched = 0;  // bytes of the response that are here, by READ
    uint64_t ticket = 0;
    uint64_t due_ns = 0;  // 0: not set yet
    uint64_t remote = 0;  // where the request goes
    Bytes response;
    uint32_t receive = 0;  // the RECV's buffer that holds it
  };
  struct Lane {
    std::unique_ptr<Pair> pair, datagram;
    Sender sender, datagram_sender;
    std::unique_ptr<Memory> staging;   // a request for each slot
    std::unique_ptr<Memory> landing;   // what is READ or received
    std::unique_ptr<Memory> replies;   // that the server WRITEs
    RemoteMemory requests, responses;  // the server's
    std::unique_ptr<Way> way;
    uint32_t server_datagram = 0;
    uint64_t next = 0;    // number of the next call
    uint64_t oldest = 0;  // that holds its slot
    std::vector<Call> calls;
    std::vector<uint32_t> free_receives;
    uint32_t receives = 0;  // posted
    uint32_t ring_at = 0;
    uint64_t probe_ns = 0;  // when it was last asked whether the pair works
    bool is_broken = false;
    bool wants_replies = false;  // kAdaptive: its mode
    uint32_t vain_calls = 0;     // in a row
    uint16_t slow_time = 0;      // what the server took when the mode was changed
  };
  struct Given {
    uint32_t lane;
    uint32_t slot;
  };

  base::Status make_lane(uint32_t server);
  base::Status make_queues();
  Sender::Limits limits() const;
  uint32_t landing_stride() const;

  void stage(Lane& lane, Call& call, Bytes request);
  bool send(Lane& lane, const Call& call);
  bool top_up(Lane& lane, uint32_t calls);
  void look(Lane& lane);
  void look_at(Lane& lane, Call& call);
  void read(Lane& lane, Call& call, uint32_t from, uint32_t bytes);
  void was_read(Lane& lane, Call& call);
  void answered(Call& call, Bytes response);
  void change_mode(Lane& lane, const Call& call, uint16_t time);
  void reap();
  void receive();
  void received(uint32_t lane, uint32_t buffer, const Completion& completion);
  void take_back();
  void free_slot(Lane& lane, Call& call);
  void watch();
  void overdue(Lane& lane, Call& call, uint64_t now);
  void fail(Lane& lane);
  uint32_t give(std::span<Reply> out);

  const Plan& plan_;
  Fabric& fabric_;
  RpcShape shape_;
  RpcLayout layout_;
  bool drains_;  // a call that was sent twice waits for its second answer, too, which would take another one's RECV
  base::SystemClock host_clock_;
  const base::Clock& clock_;
  std::unique_ptr<Queue> send_queue_, receive_queue_;
  std::vector<Lane> lanes_;
  std::vector<Given> given_;
  std::vector<uint64_t> refused_;  // tickets of calls to servers that are gone
  uint32_t polls_ = 0;
  uint32_t turn_ = 0;  // the lane that poll begins with
  Trouble trouble_;
};

}  // namespace egret::bench_paradigms
