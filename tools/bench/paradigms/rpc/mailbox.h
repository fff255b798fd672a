// Calls inside one node, where a client thread and a server core share memory: "the request and response are written
// directly, without using RDMA" (paper 003, section 5). Slots, each a call, that both ends look at in the same order.
//
//   client: ask ─▶ slot: request ─▶ core: serve ─▶ slot: response ─▶ client: take
//
// The core makes it, offers it and tells the client a number that nobody can guess; a client of another process finds
// nothing under it. Of one client thread and one core; it lives as long as either end has it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "bench_paradigms/rpc/client.h"

namespace egret::bench_paradigms {

class Mailbox {
 public:
  explicit Mailbox(const RpcShape& shape);

  // Of the client. False: no slot is free. The request may go after it.
  bool ask(Bytes request, uint64_t ticket);
  // Replies that have come, in the order of the calls; valid until the next call of ask or take.
  uint32_t take(std::span<Reply> out);

  // Of the core: what has been asked. How many calls it has executed.
  uint32_t serve(NodeId client, RpcHandler& handler);

 private:
  enum State : uint8_t { kFree, kAsked, kAnswered };
  struct Slot {
    alignas(64) std::atomic<uint8_t> state{kFree};
    uint32_t request_bytes = 0;
    uint32_t response_bytes = 0;
    uint64_t ticket = 0;
    std::vector<std::byte> request;
    std::vector<std::byte> response;
  };
  std::vector<Slot> slots_;
  // The client's: numbers of calls.
  alignas(64) uint64_t asked_ = 0;
  uint64_t taken_ = 0;
  uint64_t given_back_ = 0;
  alignas(64) uint64_t served_ = 0;  // the core's
};

// Any thread. The offer ends with the mailbox.
uint64_t offer_mailbox(const std::shared_ptr<Mailbox>& mailbox);
// Null: no core of this process offers that.
std::shared_ptr<Mailbox> find_mailbox(uint64_t number);

}  // namespace egret::bench_paradigms
