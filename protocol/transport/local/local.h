// The transport within one process: both ends of a session are threads of it.
//
//   local_listen(name) ─▶ the process's table of names ◀─ local_connect(name): a pair is made, its server waits for accept()
//
// A region is plain memory, in pages of 2 MiB where there are such. Writes are stores, reads are loads of the slot itself,
// flush() is one full fence; rings and deliveries are eventfds, which are written to only for a peer that sleeps (asleep
// and want say so). The control channel is a pair of sockets, so that a peer's end shows as it does elsewhere.
//
// A lane that is served by its client's own thread needs no wake-up at all: its server says so (serve_at_flush()), and
// the client's flush() then has its requests executed before it returns:
//
//   stage_write(own lane) … flush() ─▶ FlushServer::on_flush() ─▶ results are in the slots ─▶ stage_read, poll
//
// Threads: a client endpoint belongs to the thread that connected it. Both ends trust each other: they could as well write
// to each other's memory. So a request is executed where it lies, and long values of gets stay in the store (op/loan.h).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transport/transport.h"

namespace egret::transport {

// An error: somebody of this process listens by that name already.
base::Expected<std::unique_ptr<Listener>> local_listen(const std::string& name);
// An error: nobody does. `home`: SameProcess::home().
base::Expected<std::unique_ptr<ClientEndpoint>> local_connect(const std::string& name, int home = -1);

// Two ends that nobody has to find by a name. The client belongs to the calling thread.
struct LocalPair {
  std::unique_ptr<ServerEndpoint> server;
  std::unique_ptr<ClientEndpoint> client;
};
base::Expected<LocalPair> make_local_pair(int home = -1);

}  // namespace egret::transport
