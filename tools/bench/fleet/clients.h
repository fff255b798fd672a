// The sessions of many workers with one backend, as that many proxies would have them: they connect, wait and connect again by
// the proxy's own rules (rpc::ClientSession).
//
// Thread: the one that created it. Errors: a session that is refused, or an open one that is lost unexpectedly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"

namespace egret::bench_fleet {

class Clients final : private rpc::SessionObserver {
 public:
  // `asks`: address, window and slots of each; worker ids are its own. `hosts`: how many addresses they come from, in turn;
  // more than one only where the backend is at a tcp: address of this host.
  Clients(rpc::SessionOptions asks, uint32_t hosts, const base::Clock& clock);
  ~Clients();

  using GoesOn = std::function<bool()>;  // false: stop
  // Begins sessions, a few handshakes at a time, until so many are open.
  base::Status open(size_t count, double patience_s, const GoesOn& goes_on);
  // Until all are open again.
  base::Status reopen(double patience_s, const GoesOn& goes_on);
  void close_all();

  size_t size() const { return sessions_.size(); }
  rpc::ClientSession& at(size_t index) { return *sessions_[index].session; }
  size_t open_now() const { return open_now_; }
  // Handles what has come on any session, and ticks when it is time. Waits for at most so long.
  void turn(int most_ms);
  // A worker's pass over the sessions that are active.
  void pass();
  // Sleeps until something comes, or then, as a worker does that has nothing to do; unless a session is to be polled.
  void rest(uint64_t until_ns);
  // One get of what is not there, as a worker does it: over shared memory one that polls. An error: it has no right answer.
  base::Status ask(rpc::ClientSession& session);

  // From now on losses are no errors, and attempts to connect are counted anew.
  void expect_losses();
  uint32_t most_attempts() const;  // of one session
  // Since then: sessions that are back after they were lost, and when the first of them was; 0: none is.
  size_t back_now() const { return back_now_; }
  uint64_t first_back_ns() const { return first_back_ns_; }
  // Ok, or why one is no longer open.
  const base::Status& health() const { return lost_; }

 private:
  struct One {
    std::unique_ptr<rpc::ClientSession> session;
    uint32_t attempts = 0;  // that reached a backend
    bool was_lost = false;  // since expect_losses()
  };

  base::Status on_session_connecting(rpc::ClientSession& session) override;
  base::Status on_session_open(rpc::ClientSession& session) override;
  void on_session_active(rpc::ClientSession& session) override { active_.add(session); }
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  base::Status watch(int fd, uint32_t events, size_t index, bool is_data);
  base::Status wait_for(size_t count, double patience_s, const GoesOn& goes_on);
  size_t index_of(const rpc::ClientSession& session) const { return index_.at(&session); }

  std::string address_of(size_t index) const;

  const rpc::SessionOptions asks_;
  const uint32_t hosts_;
  const base::Clock& clock_;
  const base::UniqueFd epoll_;
  rpc::ActiveSessions active_;
  std::vector<One> sessions_;
  std::map<const rpc::ClientSession*, size_t> index_;
  size_t open_now_ = 0;
  size_t back_now_ = 0;
  uint64_t first_back_ns_ = 0;
  uint64_t ticked_ns_ = 0;
  bool losses_are_errors_ = true;
  std::string why_;    // why the last attempt failed
  base::Status lost_;  // why an open session was lost, or one was refused
};

}  // namespace egret::bench_fleet
