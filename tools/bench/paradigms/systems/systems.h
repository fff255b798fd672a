// How the nodes of each system are made. One pair of functions for each file of this folder; paradigm.cc has the rows.
#pragma once

#include <memory>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

using MakeServer = std::unique_ptr<ServerNode>(const Plan& plan, NodeId self, Fabric& fabric);
using MakeClient = std::unique_ptr<ClientNode>(const Plan& plan, NodeId self, Fabric& fabric);

MakeServer make_raw_read_server;
MakeClient make_raw_read_client;
MakeServer make_nessie_server;
MakeClient make_nessie_client;
MakeServer make_reply_server;
MakeClient make_reply_client;
MakeServer make_rfp_server;
MakeClient make_rfp_client;
MakeServer make_rfp_hybrid_server;
MakeClient make_rfp_hybrid_client;
MakeServer make_memc_server;
MakeClient make_memc_client;
MakeServer make_pilaf_vo_server;
MakeClient make_pilaf_vo_client;
MakeServer make_herd_server;
MakeClient make_herd_client;
MakeServer make_nessie_sd_server;
MakeClient make_nessie_sd_client;
MakeServer make_seq_rpc_server;
MakeClient make_seq_rpc_client;
MakeServer make_pilaf_server;
MakeClient make_pilaf_client;
MakeServer make_pilaf_em_server;
MakeClient make_pilaf_em_client;
MakeServer make_farm_em_server;
MakeServer make_farm_em_var_server;
MakeClient make_farm_em_client;  // of farm-em-var, too: the server tells which
MakeServer make_drtm_server;
MakeClient make_drtm_client;
MakeServer make_drtm_em_server;
MakeClient make_drtm_em_client;
MakeServer make_egret_server;
MakeClient make_egret_client;
MakeServer make_seq_s0_server;
MakeClient make_seq_s0_client;
MakeServer make_seq_faa_server;
MakeClient make_seq_faa_client;

}  // namespace egret::bench_paradigms
