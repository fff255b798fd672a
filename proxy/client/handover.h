// Clients that outlive their proxy: at a restart under systemd, connections that stand between two requests go into the
// service manager's file descriptor store (FDSTORE, sd_pid_notify_with_fds(3)), and the next process takes them from
// there, as descriptors that it inherits. What a client sends meanwhile waits in its socket. What cannot go (TLS, half
// a request, watchers) is drained and closed, as is everything where there is no store.
//
//   Connection ─ at rest, no more input ─▶ put() ─┐                        ┌─▶ take_clients() ─▶ forget ─▶ Worker
//   ... of every worker                            ├─ send() ─▶ the store ─┤
//   the end of the process ────────────────────────┘                        └─ no restart: closed by systemd
//
// What the next process must know of a client is in the name that its descriptor is stored under:
//   client/<language: u, t or b><y if it has said who it is, else n>/<second of its last sign of
//   life>
// Many have the same, and go in one message. A descriptor is taken out of the store before a byte of it is read: no two
// processes can ever serve it, whatever becomes of the first.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inherited.h"
#include "base/unique_fd.h"
#include "memcache/client_parser.h"

namespace egret::proxy {

struct HandedClient {
  base::UniqueFd socket;  // plain: TCP or Unix
  memcache::Standing standing;
  uint64_t last_active_ns = 0;  // of the monotonic clock, which all processes share; to the second
};

// The name of its descriptor, and back; nothing if it is not a client's.
std::string handover_name(const HandedClient& client);
std::optional<HandedClient> parse_handover_name(std::string_view name);

// Parts the clients of the process before this one from the other descriptors of `inherited`.
std::vector<base::InheritedFd> part_clients(std::vector<base::InheritedFd>& inherited);
// To be called when they are sure to be served: has the service manager forget them. Those that have gone meanwhile,
// and those of a version whose names are not known, are closed.
std::vector<HandedClient> take_clients(std::vector<base::InheritedFd> descriptors);

// How many descriptors whoever started us keeps: $FDSTORE, which systemd sets from version 254 on, and the unit for
// those before. 0: there is no store.
uint32_t places_in_store();

// What leaves this process. Any thread, but send(): for the end.
class Handover {
 public:
  explicit Handover(uint32_t places = 0) : places_(places) {}

  // Whether another may go; if so, it must.
  bool take_place();
  bool is_possible() const { return places_.load(std::memory_order_relaxed) > 0; }
  void put(HandedClient client);
  // Gives them to the service manager and waits until it has them. Returns how many.
  size_t send();

 private:
  std::atomic<uint32_t> places_;
  std::mutex mutex_;
  std::vector<HandedClient> clients_;
};

}  // namespace egret::proxy
