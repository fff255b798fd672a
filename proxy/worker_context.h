// What the connections of one worker share, and where they say what this pass must still do for them.
//
// Owned by the worker; every member is the worker's thread's. ProxyState is what all workers share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "events/event.h"
#include "memcache/client_parser.h"
#include "pool/pool.h"
#include "proxy/client/output_queue.h"
#include "proxy/proxy_state.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply.h"

namespace egret::proxy {

class Connection;

// How long clients may take; 0: for ever.
struct ClientTimeouts {
  uint64_t idle_ns = 0;       // between two signs of life
  uint64_t handshake_ns = 0;  // until the socket is ready
};

// Connections that this pass comes back to, each at most once in a list.
struct PassLists {
  std::vector<Connection*> with_output;
  std::vector<Connection*> resumable;
  std::vector<Connection*> dead;
};

struct WorkerContext {
  // Under the configuration in force.
  WorkerContext(ProxyState& proxy_state, uint32_t number, const base::Clock& proxy_clock, events::EventLoop& loop);

  // The clock of this pass is read, once; called before anything is done for a client.
  void begin_pass();
  // Takes what of the configuration in force is kept elsewhere than in it.
  void take_config();
  // A session is open: how large a value the parser hands over whole follows from the largest request slot there is.
  void fit_inline_values();

  ProxyState& proxy;
  WorkerStats& stats;
  const base::Clock& clock;
  events::EventLoop& events;
  std::shared_ptr<const Config> config;  // in force; never null
  pool::Pool pool;
  memcache::Limits limits;
  ClientTimeouts timeouts;
  WorkerMemory memory;
  BlockPool output_blocks{OutputQueue::kBlockSize};
  BlockPool input_blocks;
  std::unique_ptr<char[]> scratch;  // as large as an input block: input lands here first
  ReplyPool replies;
  uint64_t pass_ns = 0;  // when this pass began
  bool pass_has_begun = false;
  uint32_t next_upload_id = 1;
  PassLists lists;
};

}  // namespace egret::proxy
