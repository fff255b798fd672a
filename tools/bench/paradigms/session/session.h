// A session: the hosts of a run, from their connection to the report. The listening side (which stores) decides
// everything; the connecting ones (with the client threads) do what it says.
//
//   listening side                                    connecting sides
//     listen: shows the token, waits for all hosts      connect: gives the token
//     run(order, work), again and again                 follow(work)
//       every host builds the keys, then every node in a thread of its own, with a Fabric of its own:
//         make, prepare ─▶ notices to all nodes of all hosts ─▶ join ─▶ load ─▶ work.run ─▶ what it returns, to the
//         listening side ─▶ nodes go, when all nodes of all hosts have ended
//     end(report)                                       follow returns the report
//
// Server cores (nodes 0 … servers-1) are threads of the listening host; client node servers + i is one of connecting host
// i mod hosts. Threads: a Session belongs to one thread; work.run is called in all nodes' threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/client/address.h"
#include "bench_paradigms/node.h"
#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

// One run of one paradigm, the same on all hosts.
struct Order {
  std::string paradigm;  // its id
  Plan plan;             // but for `keys`, which each host builds
  uint32_t keys = 1;     // how many there are
  std::string workload;  // what NodeWork has to know besides; any bytes
};

// How the nodes of all hosts go from one phase of their work to the next. A node never waits here: servers serve on until
// the next phase begins. Of one node's thread.
class Gate {
 public:
  virtual ~Gate() = default;
  // This node has come to the end of its phase. Once for each phase; not again before it is open.
  virtual void arrive() = 0;
  // All nodes have arrived: the next phase has begun. One load of an atomic.
  virtual bool is_open() const = 0;
  // A host is gone, or somebody interrupts: the work is to return soon.
  virtual bool is_broken() const = 0;
};

// What a node's thread has while it works.
struct Seat {
  NodeId self = 0;
  const Paradigm& paradigm;
  const Order& order;
  const Plan& plan;  // the order's, with the keys
  Fabric& fabric;    // its counts
  ServerNode* server = nullptr;
  ClientNode* client = nullptr;  // one of both
  Gate& gate;

  // After a look that found nothing to do. An emulated device needs the processor that we poll on.
  void rest() const;
};

class NodeWork {
 public:
  virtual ~NodeWork() = default;
  // All nodes of all hosts are loaded. What is returned reaches the listening side (RunResult::figures).
  virtual std::string run(Seat& seat) = 0;
};

struct RunResult {
  std::string not_available;         // why this paradigm cannot run with these devices and this plan; empty if it has
  std::vector<std::string> figures;  // what NodeWork::run has returned, by node
};

// What a host says of itself.
struct HostInfo {
  std::string device;  // "rxe0 port 1, mtu 4096"
  uint32_t processors = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The listening one first.
  virtual const std::vector<HostInfo>& hosts() const = 0;
  // Of the devices of all hosts.
  virtual const Capabilities& capabilities() const = 0;
  // Fails when a host is gone, or on an interruption: then nothing more can be run.
  virtual base::Expected<RunResult> run(const Order& order, NodeWork& work) = 0;
};

// Who connects to whom: one of the three addresses is given. An address without a host, ":PORT", is loopback's.
struct Sides {
  std::string listen;   // ADDRESS:PORT; whoever connects and has the token may READ the memory of the runs
  std::string connect;  // HOST:PORT of the listening one
  std::string loop;     // ADDRESS:PORT: both sides in this process
  std::string token;    // connecting: the one that the listening side has shown
  uint32_t hosts = 1;   // listening, loop: connecting hosts to wait for
};

// Runs this side, or both. `lead` is called on the listening side once all hosts are there; the report that it returns is
// told to all of them and comes back on each. `say` is given lines for the operator, such as the token.
base::Expected<std::string> run_sides(const Sides& sides, NodeWork& work,
                                      const std::function<base::Expected<std::string>(Session&)>& lead,
                                      const std::function<void(const std::string&)>& say,
                                      const std::atomic<bool>& stop);

}  // namespace egret::bench_paradigms
