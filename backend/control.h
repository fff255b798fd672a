// The control thread: accepts connections, which become sessions (sessions/sessions.h), and hands on the partitions'
// messages.
//
// It runs a libevent loop on the thread that calls run(). SIGTERM and SIGINT end the loop; SIGHUP reloads the
// configuration and sends the partitions what concerns them. The loop also pings the systemd watchdog as long as every
// partition answers, and serves the admin address. In a process that is more than a backend, signals and watchdog are
// somebody else's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/config.h"
#include "backend/mailbox.h"
#include "backend/report/admin_pages.h"
#include "backend/sessions/sessions.h"
#include "base/clock.h"
#include "base/options/reload.h"
#include "base/service/watchdog.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "transport/transport.h"

namespace egret::backend {

class Control final : private AdminPages::Host, private Sessions::Host {
 public:
  enum class Process : uint8_t { kBackend, kMore };  // what the process is
  // `config`: the configuration in force, which `reloader` has.
  // `groups`: the partitions', by number; outlive this object. None: endpoints are polled one by one.
  Control(const Config& config, const Identity& identity, Mailboxes& mailboxes, base::Reloader& reloader,
          Process process = Process::kBackend, std::vector<transport::PollGroup*> groups = {});
  ~Control();

  base::Status listen();
  // Serves until SIGTERM or SIGINT. Then closes everything and sends kStop to the partitions. An error: it could not
  // begin; the partitions are told all the same.
  base::Status run();
  // Any thread: run() is to return, as after SIGTERM.
  void ask_to_stop();
  // Tells the partitions to stop: for when run() is not called any more.
  void stop_partitions();

 private:
  struct Place {  // an address on which we listen
    Control* control;
    std::string address;
    std::unique_ptr<transport::Listener> listener;
    events::Event acceptable;
    events::Event again;  // after a pause

    void on_acceptable() { control->on_accept(*this); }
    void on_again() { control->accept_again(*this); }
  };

  void on_accept(Place& place);
  bool accept_one(Place& place);
  void post(uint32_t partition, const Message& message) override;
  void on_room() override;
  void on_forgotten() override;
  void on_resend();
  void on_messages();
  void ping_watchdog();
  void inquire(uint32_t partition, PartitionReport& report) override;
  ControlFigures figures() const override;
  uint64_t kept_bytes() const;
  void look_at_kept();
  base::Expected<std::unique_ptr<Place>> open_place(const std::string& address, const Config& config);
  base::Status begin();
  void begin_accepting(Place& place);
  void accept_again(Place& place);
  void reload();
  base::Status apply(const base::Options& options);
  base::Status listen_anew(const Config& next);
  void take_again(const std::vector<std::string>& addresses);
  void stop() { loop_.stop(); }

  const Process process_;
  base::UniqueFd stop_asked_;  // an eventfd
  Config config_;              // in force
  base::Reloader& reloader_;
  base::ReloadCounters reloads_;
  bool memory_was_refused_ = false;  // a partition refused the limit: the next reload tries again
  Mailboxes& mailboxes_;
  const uint32_t node_;  // our number in the Mailboxes
  const uint32_t partitions_;
  const std::vector<transport::PollGroup*> groups_;
  base::Watchdog watchdog_;
  const base::SystemClock clock_;
  events::EventLoop loop_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<events::Event> events_;  // messages, signals
  events::Event resend_;
  events::Event look_at_kept_;
  events::Event ping_;  // pending if there is a watchdog
  Sessions sessions_;
  AdminPages admin_pages_;
};

}  // namespace egret::backend
