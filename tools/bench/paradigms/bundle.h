// Several connections of a client thread to each server core (Tuning::queue_pairs): where a card's memory of queue pairs ends
// shows only with more of them than threads. Each connection is a client of the paradigm, with pairs, slots and memory
// of its own; the thread's ops take them in turn.
//
//   harness, session:   node t                  │ plan: clients = threads
//   the paradigm:       clients t·Q … t·Q+Q-1   │ plan: clients = threads · Q, the same for all nodes of a process
//
// A notice is those of all for all, each behind its length.
#pragma once

#include <memory>

#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

std::unique_ptr<ServerNode> make_bundled_server(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                                Fabric& fabric);
std::unique_ptr<ClientNode> make_bundled_client(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                                Fabric& fabric);

}  // namespace egret::bench_paradigms
