// A client that watches: moves lines from its Watcher to the client's output, and asks the backends for evictions,
// since only they know them.
//
//   WatchHub ─▶ Watcher ─ wake ─▶ go_on() ─ while it may_run_ahead() ─▶ output
//   timer ─▶ EvictionPoll (a lane) ─ Iterate ─▶ lane ─ records ─▶ lines ─▶ Watcher
//                                                    └ forbidden ─▶ a line that says so; not asked again
//
// Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "events/event.h"
#include "proxy/client/output_queue.h"
#include "proxy/client/watch_hub.h"
#include "proxy/replies/reply_queue.h"
#include "rpc/session_ref.h"

namespace egret::proxy {

struct WorkerContext;

class Watch final {
 public:
  static constexpr uint32_t kPollMs = 50;  // between two polls for evictions

  // Null: there are too many watchers, or the system has no descriptors left for one more.
  static std::unique_ptr<Watch> begin(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies,
                                      const OutputQueue& output);
  ~Watch();
  // Call it when output was sent.
  void go_on();

 private:
  // Polls the evictions of one lane. While a poll is outstanding, it outlives its Watch.
  struct EvictionPoll final : rpc::Waiter {
    Watch* watch = nullptr;
    rpc::SessionRef session;
    uint64_t generation = 0;
    uint32_t lane = 0;
    uint64_t cursor = 0;
    bool is_asked = false;
    bool is_refused = false;  // the backend does not let this session list keys

    void ask();
    void on_result(const op::Result& result) override;
  };

  Watch(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies, const OutputQueue& output);
  bool wait_for_lines();
  void on_woken();
  void on_timer();
  void poll_backends();
  void on_evicted(std::string_view records, uint64_t lost);
  void on_refused(const EvictionPoll& poll);

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
