// The control thread: accepts connections and makes sessions of them. It grants a session, and frees a session's
// memory, only when every partition has let go of the worker's previous session.
//
//   accepted ─ hello ─▶ [challenge, proof] ─▶ [the worker's old session closes; queue pairs join] ─ memory ─▶ grant: open
//   open ─ peer gone, or session broken ─▶ closing ─ all partitions have acknowledged ─▶ destroyed
//
// Queue pairs and memory are made, and destroyed, by other threads (setup/), for many sessions at a time; this one
// decides, and talks.
//
// With a secret (option secret_file), nothing is allocated for a peer, no partition hears of it and no other session is
// closed for it before it has proved that it holds the secret.
//
// It runs a libevent loop on the thread that calls run(). SIGTERM and SIGINT end the loop; SIGHUP reloads the
// configuration and sends the partitions what concerns them. The loop also pings the systemd watchdog as long as every
// partition answers, and serves the admin address. In a process that is more than a backend, signals and watchdog are
// somebody else's.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "access/admission.h"
#include "access/handshake_rate.h"
#include "access/ledger.h"
#include "backend/admin_pages.h"
#include "backend/config.h"
#include "backend/mailbox.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/options/reload.h"
#include "base/service/watchdog.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "setup/setup_threads.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::backend {

// Random numbers of this process, which every grant contains.
struct Identity {
  uint64_t epoch = 0;
  uint64_t hash_seed = 0;
};

class Control final : private AdminPages::Host, private transport::Doorkeeper {
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
  struct Session;
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
  void on_prepared(Session& session, const base::Status& prepared);
  void give_to_setup(Session& session, SetupThreads::Work work);
  void on_setup_done();
  size_t in_setup() const { return setup_.waiting(SetupThreads::Kind::kMake); }
  bool lets_in(const std::string& peer_group) override;
  void charge(const std::string& peer_group) override;
  uint32_t come_back_ms(const std::string& peer_group, bool came_back) override;
  bool asks_for_proof() const override { return !config_.secrets.empty(); }
  void limit_newcomers();
  uint32_t pause_for(const std::string& peer_group, bool came_back, uint64_t own_id);
  void on_control_ready(Session& session);
  void take_frames(Session& session);
  void read_on(Session& session);
  void read_on_later(Session& session, std::chrono::milliseconds pause);
  void on_frame(Session& session, std::span<const std::byte> frame);
  void on_hello(Session& session, std::span<const std::byte> frame);
  void on_proof(Session& session, std::span<const std::byte> frame);
  void admit(Session& session);
  void on_nothing_to_read(Session& session);
  void grant_when_ready(Session& session);
  void make(Session& session);
  bool take_lane_rings(const Session& session);
  void on_made(Session& session, const base::Status& made);
  void held_sessions_changed(const Session& session);
  uint32_t home_of(const Session& session) const;
  void attach(const Session& session, const wire::Grant& granted);
  op::Rights rights_of(const Session& session) const;
  bool carve(const Session& session, wire::RegionLayout& layout, std::string& refusal) const;
  void refuse(Session& session, const std::string& reason);
  void ask_back(Session& session, uint32_t pause_ms);
  void turn_away(Session& session, const wire::Refusal& refusal);
  base::LogLimit& limit_of_refusal(const std::string& reason);
  void close(Session& session, const std::string& why);
  void discard(Session& session);
  void post(uint32_t partition, const Message& message);
  void on_resend();
  void on_messages();
  void on_ended(const Message& message);
  void on_detached(uint64_t session_id);
  void destroy(Session& session);
  void forget(uint64_t session_id);
  void ping_watchdog();
  void inquire(uint32_t partition, PartitionReport& report) override;
  ControlFigures figures() const override;
  void sweep_silent();
  uint64_t kept_bytes() const;
  void look_at_kept();
  base::Expected<std::unique_ptr<Place>> open_place(const std::string& address, const Config& config);
  base::Status begin();
  void begin_accepting(Place& place);
  void accept_again(Place& place);
  void reload();
  base::Status apply(const base::Options& options);
  base::Status listen_anew(const Config& next);
  void stop() { loop_.stop(); }

  const Process process_;
  base::UniqueFd stop_asked_;  // an eventfd
  Config config_;              // in force
  base::Reloader& reloader_;
  base::ReloadCounters reloads_;
  bool memory_was_refused_ = false;  // a partition refused the limit: the next reload tries again
  const Identity identity_;
  Mailboxes& mailboxes_;
  const uint32_t node_;  // our number in the Mailboxes
  const uint32_t partitions_;
  const std::vector<transport::PollGroup*> groups_;
  base::Watchdog watchdog_;
  const base::SystemClock clock_;
  access::HandshakeRate handshake_rate_;
  access::Admission admission_;
  events::EventLoop loop_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<events::Event> events_;  // messages, signals
  events::Event sweep_;
  events::Event resend_;
  events::Event look_at_kept_;
  events::Event ping_;  // pending if there is a watchdog
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  access::Ledger ledger_;  // of the same sessions
  uint64_t next_session_ = 1;
  std::map<std::string, base::LogLimit> refusal_limits_;  // by reason
  base::LogLimit other_refusals_;                         // for reasons beyond kMaxRefusalReasons
  ControlFigures counted_;                                // only its counters are used
  AdminPages admin_pages_;
  SetupThreads setup_;  // ends before what it works on
};

}  // namespace egret::backend
