// Client connections that survive a restart of the proxy under systemd. A connection between two requests goes into the
// service manager's file descriptor store (FDSTORE, sd_pid_notify_with_fds(3)), and the next process inherits it from
// there. Bytes that the client sends meanwhile wait in the socket. Connections that cannot be handed over (TLS, half a
// request, watchers) are drained and closed; so are all if there is no store.
//
//   Connection ─ at rest, no more input ─▶ put() ─┐                        ┌─▶ take_clients() ─▶ forget ─▶ Worker
//   ... of every worker                            ├─ send() ─▶ the store ─┤
//   the end of the process ────────────────────────┘                        └─ no restart: closed by systemd
//
// The name of the stored descriptor tells the next process the client's state:
//   client/<language: u, t or b><y if it has authenticated, else n>/<second of its last activity>
// Clients with the same name go in one message. The next process removes descriptors from the store before it reads
// from them, so two processes never serve the same client, even if the first one crashes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/service/inherited.h"
#include "base/unique_fd.h"
#include "memcache/client_parser.h"

namespace egret::proxy {

struct HandedClient {
  base::UniqueFd socket;  // plain: TCP or Unix
  memcache::ResumeState resume_state;
  uint64_t last_active_ns = 0;  // monotonic clock, which all processes share; rounded to seconds
};

// The name of a client's descriptor; and the client of a name, or nothing if it is not a client's.
std::string handover_name(const HandedClient& client);
std::optional<HandedClient> parse_handover_name(std::string_view name);

// Removes the clients of the process before this one from `inherited`, and returns them.
std::vector<base::InheritedFd> part_clients(std::vector<base::InheritedFd>& inherited);
// Call it when they are sure to be served: removes them from the store. Closes clients that have disconnected
// meanwhile, and those with an unknown name (of another version).
std::vector<HandedClient> take_clients(std::vector<base::InheritedFd> descriptors);

// How many descriptors the supervisor stores: $FDSTORE, which systemd sets from version 254 on, and our unit for
// earlier versions. 0: there is no store.
uint32_t places_in_store();

// The clients to hand over. Any thread; send() only at the end of the process.
class Handover {
 public:
  explicit Handover(uint32_t places = 0) : places_(places) {}

  // Reserves a place in the store. True: the caller must put() its client. False: the store is full.
  bool take_place();
  bool is_possible() const { return places_.load(std::memory_order_relaxed) > 0; }
  void put(HandedClient client);
  // Sends all clients to the service manager and waits until it has them. Returns how many.
  size_t send();

 private:
  std::atomic<uint32_t> places_;
  std::mutex mutex_;
  std::vector<HandedClient> clients_;
};

}  // namespace egret::proxy
