// A client that watches: takes the lines that its Watcher has been given to the client's output, and asks the backends
// who was evicted, since only they know.
//
//   WatchHub ─▶ Watcher ─ wake ─▶ go_on() ─ while less than kMaxAhead waits ─▶ output
//   timer ─▶ EvictionPoll (a lane) ─ Iterate ─▶ lane ─ records ─▶ lines ─▶ Watcher
//
// Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "events/event.h"
#include "proxy/client/output_queue.h"
#include "proxy/commands/watch_hub.h"
#include "proxy/replies/reply_queue.h"
#include "rpc/client_session.h"

namespace egret::proxy {

struct WorkerContext;

class Watch final {
 public:
  static constexpr size_t kMaxAhead = 64 * 1024;  // bytes that wait for the client to read them
  static constexpr uint32_t kPollMs = 50;         // between two questions who was evicted

  // Null: there are too many watchers.
  static std::unique_ptr<Watch> begin(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies,
                                      const OutputQueue& output);
  ~Watch();
  // Something of the output was sent.
  void go_on();

 private:
  // The evicted of one lane. While it is asked it outlives its watch.
  struct EvictionPoll final : rpc::Waiter {
    Watch* watch = nullptr;
    rpc::ClientSession* session = nullptr;
    uint64_t generation = 0;
    uint32_t lane = 0;
    uint64_t cursor = 0;
    bool is_asked = false;

    void ask();
    void on_result(const op::Result& result) override;
  };

  Watch(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies, const OutputQueue& output);
  void on_woken();
  void on_timer();
  void poll_backends();
  void on_evicted(std::string_view records, uint64_t lost);

  WorkerContext& worker_;
  WatchHub& hub_;
  ReplyQueue& replies_;
  const OutputQueue& output_;
  Watcher watcher_;
  events::Event woken_;
  events::Event timer_;
  std::vector<EvictionPoll*> polls_;
};

}  // namespace egret::proxy
