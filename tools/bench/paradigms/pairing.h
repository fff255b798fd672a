// Gets by one paradigm and puts by another, as a row of its own: NessieHY is `--get nessie --put nessie-sd`.
//
//   begin: get ─▶ nodes of the one, put and erase ─▶ nodes of the other; both in the same threads, over the same device
//
// What an op costs is that of its own paradigm. Each of both has a store of its own: a get shows what was loaded.
#pragma once

#include <memory>
#include <string_view>

#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

// The row "get+put"; null: one of both is not in the table, or has no gets or no puts. Lives as long as the process.
const Paradigm* paired(std::string_view id);

std::unique_ptr<ServerNode> make_paired_server(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric);
std::unique_ptr<ClientNode> make_paired_client(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric);

}  // namespace egret::bench_paradigms
