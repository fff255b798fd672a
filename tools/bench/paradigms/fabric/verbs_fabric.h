// The fabric over libibverbs, between hosts. Queue pairs are made by hand on the way that the control connection has found:
// only the peer's address is another for each peer. Plain queue pairs, no extended ones: an interposer sees every verb.
//
//   find_route(control) ─▶ Route ─▶ probe: what the device can do ─▶ told to the others ─▶ make_verbs_fabric, for each node
//
// A Route is plain; the device that it names is the control connection's, which outlives all fabrics. Threads: any number of
// fabrics on one device, each its own thread's.
#pragma once

#include <memory>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

// From this host's device to others.
struct Route {
  ibv_context* device = nullptr;
  ibv_qp_attr way{};           // as of the control connection's pair
  NodeAddress own;             // of this host; `node` is not set
  bool is_infiniband = false;  // the link layer: else Ethernet
};

base::Expected<Route> find_route(const rdma_cm_id* control);

// Asks the device and tries it: pairs of each type to itself, and a FETCH_ADD. What fails is what it lacks.
base::Expected<Capabilities> probe(const Route& route);

// `all`: what the devices of all hosts can do (fabrics keep to it, so that both ends of a pair agree).
base::Expected<std::unique_ptr<Fabric>> make_verbs_fabric(const Route& route, uint32_t node, const Capabilities& all);

}  // namespace egret::bench_paradigms
