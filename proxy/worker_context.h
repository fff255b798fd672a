// What the connections of one worker share, with the lists of connections that the present pass must handle.
//
// Owned by the worker; only its thread uses it. All workers share ProxyState.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "events/event.h"
#include "memcache/client_parser.h"
#include "pool/pool.h"
#include "pool/warm/pulls.h"
#include "proxy/client/output_queue.h"
#include "proxy/proxy_state.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply.h"
#include "rpc/active/active_sessions.h"
#include "transport/transport.h"

namespace egret::proxy {

class Connection;

// Time limits of clients; 0: none.
struct ClientTimeouts {
  uint64_t idle_ns = 0;       // between two requests, or reads by the client
  uint64_t handshake_ns = 0;  // until the TLS handshake is over
};

// Connections that this pass must handle again, each at most once in a list.
struct PassLists {
  std::vector<Connection*> with_output;
  std::vector<Connection*> resumable;
  std::vector<Connection*> dead;
};

// Large values that are pulled take of what sets may collect.
class PulledMemory final : public pool::PullMemory {
 public:
  explicit PulledMemory(WorkerMemory& memory) : memory_(memory) {}
  bool take(uint64_t bytes) override { return memory_.collected.take(bytes); }
  void give(uint64_t bytes) override { memory_.collected.give(bytes); }

 private:
  WorkerMemory& memory_;
};

struct WorkerContext {
  // Uses the configuration in force.
  WorkerContext(ProxyState& proxy_state, uint32_t number, const base::Clock& proxy_clock, events::EventLoop& loop,
                pool::Pool::MakeSession make_session);

  // Reads the clock for this pass. Called before anything is done for a client.
  void begin_pass();
  // Takes the configuration in force, and updates members that are derived from it.
  void take_config();
  // Called when a session opens: sets how large a value the parser passes on whole, by the largest request slot.
  void fit_inline_values();
  // Passwords have been verified.
  void on_verified();
  // Something may have come for a session.
  void on_group_ready();

  ProxyState& proxy;
  WorkerStats& stats;
  const base::Clock& clock;
  events::EventLoop& events;
  std::shared_ptr<const Config> config;               // in force; never null
  const std::unique_ptr<transport::PollGroup> group;  // what the worker polls of its sessions; outlives them
  pool::Pool pool;
  rpc::ActiveSessions active{group.get()};  // of the pool's
  memcache::Limits limits;
  ClientTimeouts timeouts;
  WorkerMemory memory;
  BlockPool output_blocks{OutputQueue::kBlockSize};
  BlockPool input_blocks;
  std::unique_ptr<char[]> scratch;  // as large as an input block: sockets are read into it
  ReplyPool replies;
  const std::shared_ptr<VerifiedInbox> verified = std::make_shared<VerifiedInbox>();  // passwords of our clients
  uint64_t pass_ns = 0;                                                               // when this pass began
  bool pass_has_begun = false;
  uint32_t next_upload_id = 1;
  PulledMemory pulled_memory{memory};
  pool::Pulls pulls;
  PassLists lists;
  events::Event verified_event;
  events::Event group_event;
};

}  // namespace egret::proxy
