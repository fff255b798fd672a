// A worker's door for the other workers of this process (`sessions: host`): for each backend of another host one worker
// has the session, and the others hand their ops over to it by slots of shared memory, as slot clients do.
//
//   worker 1 ─ a relayed session ─▶ HostDoor of worker 0 ─▶ SlotSessions ─ worker 0's session ─▶ backend
//
// Which worker that is follows from the backend's name, so that backends are spread over the workers, and all know it.
// Whoever may connect is root or this process's user, by the kernel's word: they could use the backends without us.
// Thread: the worker's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "events/event.h"
#include "pool/member.h"
#include "proxy/config.h"
#include "proxy/slots/slot_session.h"
#include "transport/transport.h"

namespace egret::proxy {

// The number of the worker that has the session with the backend.
uint32_t host_worker(const pool::Member& backend, uint32_t workers);
// Whether this worker reaches the backend by another one.
bool is_handed_over(const Config& config, const pool::Member& backend, uint32_t worker);
// What names the backend in hellos between workers.
uint64_t host_tag(const pool::Member& backend);
// What a worker's session with such a backend asks for. `door`: the process's ProxyState::host_door.
rpc::SessionOptions handed_over(rpc::SessionOptions options, const Config& config, const pool::Member& backend,
                                const std::string& door);

class HostDoor {
 public:
  static constexpr size_t kMostNewcomers = 1024;  // that have not said yet which backend they want

  // `take`: is given each session that is asked for, without its member and layout.
  HostDoor(events::EventLoop& loop, std::function<void(NewSlotSession session)> take)
      : loop_(loop), take_(std::move(take)) {}

  base::Status listen(const std::string& door, uint32_t worker);

 private:
  struct Newcomer {
    HostDoor* door = nullptr;
    uint64_t number = 0;
    std::unique_ptr<transport::ServerEndpoint> endpoint;
    events::Event readable{};

    void on_readable() { door->on_readable(*this); }
  };

  void on_acceptable();
  void on_readable(Newcomer& newcomer);

  events::EventLoop& loop_;
  const std::function<void(NewSlotSession session)> take_;
  std::unique_ptr<transport::Listener> listener_;
  events::Event acceptable_;
  std::map<uint64_t, std::unique_ptr<Newcomer>> newcomers_;
  uint64_t next_ = NewSlotSession::kOfWorker;
};

}  // namespace egret::proxy
