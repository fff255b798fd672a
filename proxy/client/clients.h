// The clients of one worker. One that is active, or was within the last second or two, has a Connection; the others are at
// rest.
//
//   NewClient ─▶ Connection ─ nothing under way, nothing came for kRestAfterNs ─▶ RestingClients
//                  │  ▲                                                              │
//                  │  └─────────────────── it sends something, times out ◀───────────┘
//                  └ dead ─▶ destroyed at the end of a pass
//
// Thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/slabs.h"
#include "events/event.h"
#include "proxy/client/connection.h"
#include "proxy/client/resting_clients.h"
#include "proxy/worker_context.h"

namespace egret::proxy {

class Clients {
 public:
  // Throws std::system_error if the system has no descriptors left.
  explicit Clients(WorkerContext& worker);

  void take_in(NewClient client);
  // Whether there is none any more.
  bool are_gone() const { return connections_.empty() && resting_.count() == 0; }

  // The phases of a pass, each for those that its lists name. Whether there was any.
  bool resume();
  void send_answers();
  bool destroy_dead();

  // While a large value waits for memory, those that hold one and do not read it are disconnected. The answer has begun, so
  // it cannot be replaced by an error. While input takes much memory, those that do not complete their command are.
  void disconnect_stalled();
  // A configuration is about to be taken, which may be the present one; and it was.
  void prepare(const Config& next);
  void on_reload();
  // The worker stops (Connection::last_call()); then called now and then.
  void last_call();
  void check_last_call(bool is_late);
  // The worker has stopped.
  void clear() { connections_.clear(); }

 private:
  Connection& wake(ConnectionRecord& record);
  template <typename Is>
  void wake_those(const Is& is);
  Connection& add(base::UniqueFd plain, std::unique_ptr<ClientSocket> tls, ConnectionRecord& record);
  void remove(const Connection& connection);
  void put_to_rest();
  void look_again(bool may_soon, bool may_later);
  void return_memory();
  void check_timeouts_at(uint64_t ends_ns);
  void on_timeouts();
  uint64_t time_out_resting();

  WorkerContext& worker_;
  base::Slabs slabs_{sizeof(Connection)};  // outlives connections_
  std::vector<base::Slabs::Owned<Connection>> connections_;
  RestingClients resting_;
  uint64_t rest_look_ns_ = Connection::kRestAfterNs;  // until the next look
  size_t unlooked_ = 0;                        // how many of connections_ this look has still to see; 0: it is over
  bool may_soon_ = false, may_later_ = false;  // what this look has found so far
  events::Event return_memory_;                // pending for a while after connections were destroyed
  events::Event timeouts_;                     // pending while a client may run into a timeout
  uint64_t timeouts_checked_ns_ = Connection::kNever;  // when timeouts_ fires
};

}  // namespace egret::proxy
