// How the nodes of each system are made. One pair of functions for each file of this folder; paradigm.cc has the rows.
#pragma once

#include <memory>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

using MakeServer = std::unique_ptr<ServerNode>(const Plan& plan, NodeId self, Fabric& fabric);
using MakeClient = std::unique_ptr<ClientNode>(const Plan& plan, NodeId self, Fabric& fabric);

MakeServer make_raw_read_server;
MakeClient make_raw_read_client;

}  // namespace egret::bench_paradigms
