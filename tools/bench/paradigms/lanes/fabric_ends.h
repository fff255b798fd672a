// The two ends of a session as protocol/rpc wants them (transport/transport.h), over the laboratory's fabric: what
// transport/verbs_client.cc and verbs_server.cc are over rdma_cm.
//
//   client  request image ─ WRITE ─▶ request memory   server
//           response image ◀─ READ ─ response memory
//           reply slots ◀─ WRITE with immediate (the slot's number) ─┘ deliver
//
// Nodes tell each other before a run where memories are (ServerTold, ClientTold), and the server's grant with it: so the
// control channel has one frame, which is there when a session connects. Nobody sleeps: there are no rings, and no
// descriptor to wait for. A region has one lane. Thread: the node's.
#pragma once

#include <memory>
#include <vector>

#include "bench_paradigms/lanes/lane_link.h"
#include "transport/transport.h"

namespace egret::bench_paradigms {

struct ServerTold {
  RemoteMemory requests, responses;
  uint32_t pair = 0;
  uint32_t unused = 0;
};
struct ClientTold {
  RemoteMemory replies;
  uint32_t pair = 0;
  uint32_t unused = 0;
};

// What both ends of a session are made with.
struct EndSpec {
  transport::RegionShape shape;
  uint32_t window = 0;  // slots of the lane
  bool is_inline = true;
};

class FabricClientEnd final : public transport::ClientEndpoint {
 public:
  FabricClientEnd(Fabric& fabric, const EndSpec& spec);

  base::Status make_ready();
  ClientTold told() const { return {replies_->remote(), link_.pair(), 0}; }
  // `grant`: the frame that the server has sent. Fails on a region of another size.
  base::Status join(const NodeAddress& server, const ServerTold& told, std::string_view grant);

  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status map_region(const transport::RegionShape& shape) override;
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_->data(); }
  const std::byte* response_image() const override { return responses_->data(); }
  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override;
  void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) override;
  void flush() override { link_.flush(); }
  size_t poll(std::span<transport::Event> events) override;
  void ring(uint32_t) override {}
  int data_fd() const override { return -1; }
  void arm() override {}
  void keep_alive() override;
  void close() override { is_closed_ = true; }

 private:
  transport::Event to_event(const Completion& done) const;

  Fabric& fabric_;
  EndSpec spec_;
  transport::Limits limits_;
  std::unique_ptr<Memory> requests_, responses_, replies_;
  ServerTold server_;
  std::string grant_;  // until it is received
  bool is_closed_ = false;
  LaneLink link_;  // goes before the memories that it is about
};

class FabricServerEnd final : public transport::ServerEndpoint {
 public:
  FabricServerEnd(Fabric& fabric, const EndSpec& spec);

  ServerTold told() const { return {requests_->remote(), responses_->remote(), link_.pair(), 0}; }
  // Fails on reply slots of another size.
  base::Status join(const NodeAddress& client, const ClientTold& told);

  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  // Memories and the pair, as the EndSpec has them.
  base::Status create_region(const transport::RegionShape& shape) override;
  const transport::Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::byte* request_memory() const override { return requests_->data(); }
  std::byte* response_memory() override { return responses_->data(); }
  void deliver(uint32_t lane, size_t offset, size_t length) override;
  // Takes what deliveries have completed; there is nothing to tell of.
  size_t poll(std::span<transport::Event> events) override;
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

 private:
  Fabric& fabric_;
  EndSpec spec_;
  transport::Limits limits_;
  const std::string peer_ = "a client of the laboratory";
  std::unique_ptr<Memory> requests_, responses_;
  RemoteMemory replies_;
  LaneLink link_;
};

}  // namespace egret::bench_paradigms
