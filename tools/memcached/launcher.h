// Starts the two daemons, waits for either to end or for a signal, and ends both.
//
//   egret-backend ─ READY ─▶ egret-proxy ─ READY ─▶ on_ready: port file, pid file, the waiting parent of -d
//
// One thread: it polls a signalfd and the socket to which the daemons send their notices (base/service/notify.h). The backend
// is started first, so the proxy has its sessions when it begins to accept clients.
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
  std::vector<std::string> backend_arguments;  // without `listen`
  std::vector<std::string> proxy_arguments;    // without `backends`
  std::vector<std::string> listen;             // of the backend, beside the proxy's own way
  bool silent = false;                         // the daemons' output goes to /dev/null
  std::string where;                           // "TCP port 11211", for the message that listening failed
};

class Launcher {
 public:
  // on_ready: gets all addresses that are listened on, in the form of base/service/notify.h.
  Launcher(LaunchOptions options, Program backend, Program proxy,
           std::function<void(const std::vector<std::string>&)> on_ready);

  // Returns the exit status: 0 after a requested stop (a signal, a client's `shutdown`), kSystem if listening failed,
  // else 1. Errors are printed to stderr, except that listening failed.
  int run();

 private:
  // A READY, a request to stop, or the end of a daemon leads to the next state. A stop is possible in every state.
  enum class State : uint8_t {
    kBackendStarts,
    kProxyStarts,
    kServing,
    kProxyStops,    // the proxy got SIGTERM; it answers what is in flight, for which it needs the backend
    kBackendStops,  // the proxy has ended, and the backend got SIGTERM
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
  const std::string address_;  // the backend's: an abstract socket of this instance
  State state_ = State::kBackendStarts;
  int exit_status_ = 0;
  uint64_t deadline_ns_ = 0;  // when a stopping daemon is killed; 0: none is stopping
  std::string complaint_;     // the message of a daemon that cannot start
  bool cannot_listen_ = false;
  base::UniqueFd signals_;
  base::UniqueFd notices_;
};

// The addresses that clients can connect to, by a notice that it is ready (base/service/notify.h).
std::vector<std::string> addresses_of(const std::string& notice);

// Blocks the signals that run() waits for. Call it before run() and before any thread is started.
void block_signals();

}  // namespace egret::memcached
