// Both ends of a session within one process, on one pair of sockets and one link.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/local/region.h"
#include "transport/transport.h"

namespace egret::transport::local {

class LocalServerEndpoint final : public ServerEndpoint, private SameProcess {
 public:
  LocalServerEndpoint(base::UniqueFd socket, std::shared_ptr<Link> link);

  int control_fd() const override { return socket_.get(); }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  base::Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override { return "within this process"; }
  bool is_admitted() const override {
    return true;
  }  // its peers are this process's workers: few, and none may be turned away

  base::Status create_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const PeerUser* user() const override { return &user_; }
  const std::byte* request_memory() const override { return region_->requests(); }
  std::byte* response_memory() override { return region_->responses(); }

  void deliver(uint32_t lane, size_t offset, size_t length) override;
  size_t poll(std::span<Event> events) override { return region_->take_rings(events); }
  int data_fd() const override { return region_->to_server(); }
  void arm() override {}  // edge-triggered: nothing to re-arm
  void close() override;

 private:
  bool is_clients_thread() const override { return link_->client == std::this_thread::get_id(); }
  int home() const override { return link_->home; }
  void serve_at_flush(uint32_t lane, FlushServer* server) override;

  const base::UniqueFd socket_;
  const std::shared_ptr<Link> link_;
  const std::string peer_;
  const PeerUser user_;
  Limits limits_;
  std::shared_ptr<Region> region_;
};

class LocalClientEndpoint final : public ClientEndpoint {
 public:
  LocalClientEndpoint(base::UniqueFd socket, std::shared_ptr<Link> link);

  int control_fd() const override { return socket_.get(); }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  base::Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override { return "within this process"; }

  base::Status map_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return region_->requests(); }
  const std::byte* response_image() const override { return region_->responses(); }

  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override;
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    stage_write(lane, offset, length, first_word);
    ring(lane);  // its stores come after that of the word
  }
  void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) override;
  void flush() override;
  op::DirectStore* direct_store(uint32_t lane) override;
  size_t poll(std::span<Event> events) override;
  void ring(uint32_t lane) override;
  int data_fd() const override { return region_->to_client(); }
  void arm() override {}
  void close() override;

 private:
  const base::UniqueFd socket_;
  const std::shared_ptr<Link> link_;
  Limits limits_;
  std::shared_ptr<Region> region_;
  bool has_written_to_others_ = false;  // since the last flush, to lanes that other threads serve
  std::vector<FlushServer*>
      written_servers_;       // of the lanes of this thread that were written to; never grows past lanes
  std::vector<Event> reads_;  // staged, not yet handed out from reads_done_ on; never grows past read_depth
  size_t reads_done_ = 0;
};

}  // namespace egret::transport::local
