// The part of a client's endpoint that commands the device: resolves, connects queue pairs one after the other, registers
// memory, and ends all of it. On the set-up thread (set_up.h), so that the worker whose endpoint it is goes on serving its other
// sessions.
//
//   endpoint ─ begin, join, map, disconnect, end: tasks ─▶ Connector ─▶ rdma_cm, libibverbs
//            ◀─ take_news(), when it is notified ──────────┘
//
// The endpoint has the queue pairs from when it hears of them until it posts end(); then nobody posts to them any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/address.h"
#include "transport/device/fabric.h"
#include "transport/verbs/parts.h"
#include "transport/verbs_link.h"

namespace egret::transport::verbs {

class Connector final : public device::CmHandler {
 public:
  struct ConnectedPair {
    ibv_qp* handle = nullptr;
    uint32_t inline_bytes = 0;
    uint32_t read_depth = 0;
    bool peer_solicits = false;
  };
  // What has happened since the last time.
  struct News {
    std::optional<VerbsLink::Basis> basis;  // before the first pair
    std::vector<ConnectedPair> connected;   // in their order
    std::string path, remarks;              // for a log line, with the first pair
    bool joins_late = false;                // the further queue pairs wait for an invitation
    bool is_mapped = false;
    uint32_t come_back_ms = 0;  // the backend asks us to
    base::Status ended = base::Status::ok();
  };

  Connector(std::string address, const ConnectOptions& options, std::shared_ptr<SharedQueues> queues,
            std::shared_ptr<Inbox> inbox, std::shared_ptr<const device::Notifier> told);
  ~Connector() { end(); }
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  // --- the set-up thread's. What fails is told as `ended`; nothing is done after that.
  void begin(const std::shared_ptr<Connector>& self, AddressInfo resolved);
  void join(const Invitation& invitation);
  void map(const RegionShape& shape);
  void disconnect();
  void end();

  // --- the endpoint's
  // end() is to come: what is queued before it is not done any more.
  void cancel() { is_over_.store(true, std::memory_order_relaxed); }
  News take_news();
  // Once they are mapped, until end() is posted.
  PinnedMemory& requests() { return requests_; }
  PinnedMemory& responses() { return responses_; }
  PinnedMemory& replies() { return replies_; }
  // Ok, or what the device has said.
  base::Status alarm() const { return parts_.alarm(); }

 private:
  void on_cm_event(const rdma_cm_event& event) override;
  base::Status handle(const rdma_cm_event& event);
  base::Status connect_next();
  base::Status on_address(rdma_cm_id& id);
  base::Status on_route(rdma_cm_id& id);
  base::Status on_established(const rdma_cm_event& event);
  base::Status on_rejected(const rdma_cm_event& event);
  base::Status make_memories(const RegionShape& shape);
  void rebind();
  void tell(const base::Status& done);

  const std::string address_;
  const FabricOptions fabric_;
  const bool came_back_;
  const uint32_t lanes_, window_;  // as of ConnectOptions
  uint32_t wanted_pairs_;          // not more than an invitation has named
  const std::shared_ptr<SharedQueues> queues_;
  const std::shared_ptr<const device::Notifier> told_;
  std::weak_ptr<Connector> self_;
  AddressInfo resolved_;
  std::optional<device::SourceAddress> source_;  // if it is not the automatic one
  std::string not_taken_;                        // options that rdma_cm refused, for the log
  CmId connecting_;                              // the next queue pair's, until it has one
  SessionParts parts_;                           // outlives the memories
  PinnedMemory requests_, responses_, replies_;
  uint32_t connected_ = 0;  // queue pairs
  uint32_t offered_reads_ = 1;
  bool joins_late_ = false;
  bool is_invited_ = false;
  std::atomic<bool> is_over_{false};  // it has failed, is cancelled, or ended
  uint64_t token_ = 0;

  std::mutex mutex_;
  News news_;  // the mutex
};

}  // namespace egret::transport::verbs
