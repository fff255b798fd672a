// A backend and a proxy as one process: each of the proxy's workers owns partitions of the backend's store, and executes
// what its clients ask of them in its own thread.
//
//   clients ─▶ worker ─ flush ─▶ slots ─▶ own partitions: executed at once
//                                   └───▶ other workers' partitions: executed there; wake-ups only for who sleeps
//
// Threads: the calling one is the proxy's control thread, and takes the signals; the backend's control thread; workers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/service/doctor.h"
#include "base/status.h"

namespace egret::oneprocess {

struct Settings {
  std::string name;                            // of the program, for its log and its errors
  std::vector<std::string> backend_arguments;  // "NAME=VALUE"; without `listen`
  std::vector<std::string> proxy_arguments;    // without `backends`
  std::vector<std::string> listen;             // where other processes may have sessions with the store
  // Clients are served: with the notice of base/service/notify.h.
  std::function<void(const std::string& notice)> on_ready;
};

// How it ended.
struct Outcome {
  base::Status status = base::Status::ok();  // an error: it could not begin, or not go on
  bool cannot_listen = false;                // for clients
};

// Checks that this host has what both halves need: for --doctor. An error: the settings themselves are wrong.
base::Expected<base::Findings> examine(const Settings& settings);

// Serves until SIGTERM, SIGINT or SIGUSR1. SIGHUP reads what the proxy's options name again.
Outcome serve(const Settings& settings);

}  // namespace egret::oneprocess
