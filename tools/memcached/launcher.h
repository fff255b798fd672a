// Starts the two daemons, waits for either to end or for a signal, and ends both.
//
//   egret-backend ─ READY ─▶ egret-proxy ─ READY ─▶ on_ready: port file, pid file, the waiting parent of -d
//
// One thread: a poll over a signalfd and the socket on which the daemons say how they are (base/notify.h). The backend
// comes first, so the proxy has its sessions when it begins to accept: whoever connects is served.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "memcached/child.h"

namespace egret::memcached {

struct LaunchOptions {
  std::vector<std::string> backend_arguments;  // without where it listens
  std::vector<std::string> proxy_arguments;    // without where its backend is
  bool silent = false;                         // the daemons write to nowhere
  std::string where;                           // "TCP port 11211", for the message that it cannot be listened on
};

class Launcher {
 public:
  // on_ready: with every address listened on, as base/notify.h has them.
  Launcher(LaunchOptions options, Program backend, Program proxy,
           std::function<void(const std::vector<std::string>&)> on_ready);

  // Returns the exit status: 0 after a stop that was wished (a signal, a client's `shutdown`), kSystem when it could
  // not listen, else 1. Everything but that is said on stderr.
  int run();

 private:
  // Each step follows from a READY, a wish to stop or the end of a daemon. From every one of them a stop leads on.
  enum class State : uint8_t {
    kBackendStarts,
    kProxyStarts,
    kServing,
    kProxyStops,    // told to; it answers what is in flight, for which it needs the backend
    kBackendStops,  // told to, when the proxy has gone
    kEnded,
  };

  base::Status open();
  base::Status start_proxy();
  void wait();
  void on_signals();
  void on_notices();
  void on_notice(pid_t sender, const std::string& text);
  void reap();
  void on_proxy_end(int wait_status);
  void on_backend_end(int wait_status);
  void blame(const char* name, int wait_status);
  void stop();
  void go_on_stopping();
  void expect_end_within(uint64_t seconds);

  const LaunchOptions options_;
  Child backend_;
  Child proxy_;
  const std::function<void(const std::vector<std::string>&)> on_ready_;
  const std::string address_;  // of the backend: an abstract socket of this instance
  State state_ = State::kBackendStarts;
  int exit_status_ = 0;
  uint64_t deadline_ns_ = 0;  // when who is stopping is killed; 0: none
  std::string complaint_;     // of a daemon that cannot start
  bool cannot_listen_ = false;
  base::UniqueFd signals_;
  base::UniqueFd notices_;
};

// Blocks the signals that run() waits for. To be called before it and before any thread starts.
void block_signals();

}  // namespace egret::memcached
