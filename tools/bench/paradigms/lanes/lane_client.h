// A client thread with a session of one lane with each server core: what a worker of the proxy does in its passes.
//
//   begin ─▶ ClientLane::append: packed into the lane's open message
//   poll  ─▶ ClientSession: begin_pass, flush, fetch ─▶ Place::on_result ─▶ results; what finds no room waits for the next poll
//
// A value that was cut, since others of its message left too little room, is asked for again. Trouble: in messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench_paradigms/lanes/lane_shape.h"
#include "bench_paradigms/node.h"
#include "rpc/client_session.h"

namespace egret::bench_paradigms {

class LaneClient final : public ClientNode, private rpc::SessionObserver {
 public:
  LaneClient(const Plan& plan, NodeId self, Fabric& fabric, const LaneShape& shape);

  base::Status prepare() override;
  std::string notice(NodeId to) override;
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override;
  bool begin(const Op& op) override;
  uint32_t poll(std::span<Result> out) override;
  Trouble trouble() const override;

 private:
  // An op under way.
  struct Place final : rpc::Waiter {
    void on_result(const op::Result& result) override { client->take(*this, result); }

    LaneClient* client = nullptr;
    NodeId server = 0;
    uint32_t key_number = 0;
    uint64_t ticket = 0;
    Outcome outcome = Outcome::kFailed;  // with `value`: while it is in ready_
    std::string value;
  };

  bool append(Place& place, OpKind kind, std::string_view value);
  void pass(rpc::ClientSession& session, bool is_tick, bool is_alive);
  void take(Place& place, const op::Result& result);
  void give(Place& place, Outcome outcome, std::string_view value);
  void give_ready();
  void ask_again();

  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override { return base::Status::ok(); }
  void on_session_lost(rpc::ClientSession&, const std::string& why, bool) override { why_lost_ = why; }

  const Plan& plan_;
  NodeId self_;
  Fabric& fabric_;
  const base::Clock& clock_;
  LaneShape shape_;
  std::vector<Place> places_;
  std::vector<Place*> free_;
  std::vector<Place*> ready_;                                  // answered, and not handed out yet
  std::vector<Place*> again_;                                  // gets whose value was cut
  std::vector<std::unique_ptr<FabricClientEnd>> ends_;         // by server, until it has joined
  std::vector<std::unique_ptr<rpc::ClientSession>> sessions_;  // by server
  std::string why_lost_;
  uint64_t ticked_ns_ = 0;
  uint64_t alive_ns_ = 0;
  uint64_t asked_again_ = 0;
  std::span<Result> out_;  // of the poll that is under way
  uint32_t given_ = 0;
};

}  // namespace egret::bench_paradigms
