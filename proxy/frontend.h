// The proxy's control thread. It accepts clients and gives them to the workers in turn; above max_connections it
// refuses them, or accepts none until there is room. It reloads the configuration on SIGHUP, pings the watchdog, serves
// the admin address, and stops everything on SIGTERM. Its event loop runs on the thread that calls run().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options/reload.h"
#include "base/service/notify.h"
#include "base/service/watchdog.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "proxy/client/listen_socket.h"
#include "proxy/config.h"
#include "proxy/pool_control.h"
#include "proxy/report/admin_pages.h"
#include "proxy/report/stats_report.h"
#include "proxy/slots/slot_door.h"
#include "proxy/worker.h"

namespace egret::proxy {

class Frontend {
 public:
  // `stats` has the configuration in force; `reloader` replaces it.
  Frontend(ProxyState& stats, std::vector<std::unique_ptr<Worker>>& workers, base::Watchdog& watchdog,
           base::Reloader& reloader);
  ~Frontend();

  // Listens on each address of the option `listen`, and on `inherited` sockets, which replace addresses that they
  // serve.
  base::Status listen(ListenSockets inherited);
  // Who is told that clients are served, with the notice of base/service/notify.h; by default the supervisor.
  void set_on_ready(std::function<void(const std::string& notice)> on_ready) { on_ready_ = std::move(on_ready); }
  // Takes over clients of the process before this one.
  void adopt(std::vector<HandedClient> clients) { adopted_ = std::move(clients); }
  // Serves until SIGTERM or SIGINT; then closes its listeners and returns. An error: it could not begin.
  base::Status run();

 private:
  struct Listener {
    Frontend* frontend = nullptr;
    ListenSocket socket;
    events::Event acceptable;

    void on_acceptable() { frontend->on_acceptable(*this); }
  };

  base::Status listen_on(Config& config, ListenSockets& pool);
  base::Status listen_anew(const base::Options& options, Config& next);
  void add(ListenSocket socket);
  void put_in_force(Config config);
  base::Status listen_for_slots(const Config& config);
  void give_to_worker(NewSlotSession session);
  void begin_accepting(Listener& listener, bool is_news = true);
  void wait_for_backends();
  std::string ready_notice() const;
  void on_acceptable(Listener& listener);
  void give_to_worker(base::UniqueFd socket, const ListenAddress& address, const HandedClient* handed = nullptr);
  void take_over();
  void close_listeners();
  void stop_accepting();
  void rest();
  void accept_again();
  void rest_from_accepting();
  void wait_for_room();
  void refuse(base::UniqueFd socket, bool is_tls);
  void log_limit_reached(std::string_view what_clients_do) const;
  void reload();
  base::Status apply(const base::Options& options);
  void ping_watchdog();
  void wake_up() {}
  void stop() {
    is_stopping_ = true;
    loop_.stop();
  }

  std::shared_ptr<const Config> config_;  // the one in force
  ProxyState& stats_;
  std::vector<std::unique_ptr<Worker>>& workers_;
  base::Watchdog& watchdog_;
  base::Reloader& reloader_;
  events::EventLoop loop_;
  SlotDoor slot_door_;
  PoolControl pool_control_;
  AdminPages admin_pages_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<events::Event> signals_;
  events::Event rested_;    // pending while accepting pauses for want of descriptors or epoll watches
  events::Event has_room_;  // pending while there are max_connections
  events::Event ping_;      // pending if there is a watchdog
  uint64_t disabled_since_ns_ = 0;
  size_t next_worker_ = 0;
  bool is_stopping_ = false;
  std::vector<HandedClient> adopted_;  // clients that no worker has yet
  std::function<void(const std::string&)> on_ready_ = [](const std::string& notice) {
    base::notify_supervisor(notice);
  };
};

}  // namespace egret::proxy
