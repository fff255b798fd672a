// A worker's part in slots: grants sessions to clients of this host, and to other workers (host_door.h), and relays their
// ops to the backends that the worker has sessions with.
//
//   take() ─ a session with the member is open ─▶ granted, attached ─▶ served in the worker's passes ─▶ end()
//                └ none is ─▶ refused
//
// A session ends when its client does, writes garbage, or begins another one; when the backend has become another one, or
// has left the pool; and when the configuration gives its user other rights. Thread: the worker's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "events/event.h"
#include "proxy/slots/slot_session.h"
#include "proxy/worker_context.h"
#include "rpc/idle/spin_judge.h"
#include "rpc/relay/relay.h"

namespace egret::proxy {

class SlotSessions {
 public:
  explicit SlotSessions(WorkerContext& context);
  ~SlotSessions();

  void take(NewSlotSession session);
  // The worker's session with a backend has opened: another one than before ends what was relayed to it.
  void on_backend_open(rpc::ClientSession& backend);
  // It was lost, or has left: other workers' sessions end, so that they know.
  void on_backend_lost(rpc::ClientSession& backend);
  // Another configuration, or other members, are in force.
  void review();
  void end_all();

  // --- the worker's passes
  // Takes what clients ask for; the worker flushes then. Returns whether there was anything.
  bool poll();
  // After results were fetched, and before the worker sleeps.
  void push() { relay_.push(); }
  // Whether the worker should poll on instead of sleeping.
  bool should_spin();
  // True: clients' next requests wake the worker.
  bool prepare_sleep();
  // Whether other workers still need this one's sessions.
  bool serves_workers() const;

 private:
  struct Session {
    SlotSessions* sessions = nullptr;
    NewSlotSession asked;
    wire::Grant of_backend;  // that of the worker's own session when this one was granted
    std::shared_ptr<const rpc::relay::Rules> rules;
    bool is_attached = false;  // to the relay
    bool is_ready = false;     // its ready frame has come
    events::Event control{};
    events::Event data{};

    void on_control() { sessions->on_control(*this); }
    void on_data() { sessions->on_ring(*this); }
  };

  std::string grant(Session& session);
  base::Expected<std::shared_ptr<const rpc::relay::Rules>> rules_of(const Session& session) const;
  std::string serve(Session& session, rpc::ClientSession& backend, const wire::Grant& granted);
  base::Status watch(Session& session);
  void on_control(Session& session);
  void on_ring(Session& session);
  void refuse(Session& session, const std::string& why);
  void end(uint64_t number, const std::string& why);
  void end_broken();
  void end_wait(bool paid);
  void tick();
  void show();

  WorkerContext& context_;
  rpc::relay::Relay relay_;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;  // by number
  rpc::SpinJudge spin_judge_;
  // Whether the worker polls while clients, who have all their answers, ask for nothing. kIdle: they just did.
  enum class Wait : uint8_t { kIdle, kPolled, kNotPolled };
  Wait wait_ = Wait::kIdle;
  events::Event tick_;  // pending while the relay needs it
};

}  // namespace egret::proxy
