// A backend in a process, from its options to its end. Either the process is a backend and nothing else:
//
//   open ─▶ start ─▶ run: the control loop, until SIGTERM ─▶ destroyed: partitions end, then each store saves itself
//
// or other threads of it drive the partitions (Partition::begin()), and run() is a thread among others:
//
//   open ─▶ partitions() are driven ─ run ─ ask_to_stop ─▶ run returns, the partitions are told ─▶ driven to their end ─▶ destroyed
//
// Thread: the main thread, except where it says otherwise.
#pragma once

#include <memory>
#include <vector>

#include "backend/config.h"
#include "backend/control.h"
#include "backend/mailbox.h"
#include "backend/open_stores.h"
#include "backend/partition.h"
#include "base/clock.h"
#include "base/options/reload.h"
#include "base/status.h"
#include "transport/address.h"

namespace egret::backend {

class Process {
 public:
  // Throws std::system_error if the system has no descriptors for it.
  Process(const Config& config, base::Reloader& reloader, Control::Process kind);
  ~Process();

  // Listens, and opens the stores.
  base::Status open();
  std::vector<std::unique_ptr<Partition>>& partitions() { return partitions_; }
  // A thread for each partition. An error: there was none for one of them, and those before it have ended.
  base::Status start();
  // Serves until it is asked to stop; then the partitions are told. Any one thread.
  base::Status run() { return control_.run(); }
  // Any thread.
  void ask_to_stop() { control_.ask_to_stop(); }

 private:
  base::Status listen();

  const Config config_;  // as at the start
  base::Reloader& reloader_;
  const base::SystemClock clock_;
  const KeptSeed kept_;
  const Identity identity_;
  Mailboxes mailboxes_;
  const std::vector<std::unique_ptr<transport::PollGroup>> groups_;  // what each partition's thread polls
  Control control_;
  std::vector<std::unique_ptr<Partition>> partitions_;
};

}  // namespace egret::backend
