// A proxy in a process, from its configuration to its end.
//
//   listen ─▶ start: workers, each with its sessions ─▶ run: the control loop, until SIGTERM ─▶ stop: drains ─▶ hand over
//
// Thread: the main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/options/reload.h"
#include "base/service/inherited.h"
#include "base/service/watchdog.h"
#include "base/status.h"
#include "proxy/client/listen_socket.h"
#include "proxy/client/tls.h"
#include "proxy/config.h"
#include "proxy/frontend.h"
#include "proxy/loop_poller.h"
#include "proxy/proxy_state.h"
#include "proxy/worker.h"

namespace egret::proxy {

// What the process before this one, or the supervisor, has left.
struct Inherited {
  ListenSockets sockets;
  std::vector<base::InheritedFd> clients;
};
// Sorts and checks what base::take_inherited() found.
base::Expected<Inherited> sort_inherited(std::vector<base::InheritedFd> found);

class Process {
 public:
  // `pollers`: what the workers drive beside their clients, one each; none: nothing. They outlive this.
  Process(Config config, base::Reloader& reloader, std::vector<LoopPoller*> pollers = {});

  void set_on_ready(std::function<void(const std::string&)> on_ready) { frontend_.set_on_ready(std::move(on_ready)); }
  // Loads certificates. An error: they have become invalid since they were checked.
  base::Status load_tls(const ListenSockets& inherited);
  base::Status listen(ListenSockets inherited) { return frontend_.listen(std::move(inherited)); }
  // Throws std::system_error if the system has no descriptors for a worker. An error: there was no thread for one of
  // them; those before it run.
  base::Status start();
  // Serves until SIGTERM or SIGINT.
  base::Status run(std::vector<base::InheritedFd> clients);
  // The workers answer what clients have sent, and end. Their pollers may go on in their threads.
  void stop();
  // When they have ended.
  void join();
  // Gives connections that can continue to the next process.
  void hand_over();

 private:
  // With a configuration in force, and counters for each worker.
  struct State : ProxyState {
    State(Config config, const base::Clock& clock);
  };

  const base::SystemClock clock_;
  State state_;
  TlsServer tls_{clock_};
  const std::vector<LoopPoller*> pollers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  base::Watchdog watchdog_;
  Frontend frontend_;
};

}  // namespace egret::proxy
