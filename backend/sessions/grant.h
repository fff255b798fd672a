// What a peer is granted: the features that both sides have, its rights, and the largest slots that the options and what its
// peers have already leave for it. Reads only; the control thread's.
#pragma once

#include <cstdint>

#include "access/ledger.h"
#include "backend/config.h"
#include "backend/sessions/session.h"
#include "base/status.h"
#include "wire/handshake.h"

namespace egret::backend {

// Random numbers of this process, which every grant contains.
struct Identity {
  uint64_t epoch = 0;
  uint64_t hash_seed = 0;
};

// The largest window that fits session_memory and what there is left for this peer, at least kMinWindow. An error, for the
// peer to read: not even that.
base::Expected<wire::RegionLayout> layout_for(const Session& session, const Config& config,
                                              const access::Ledger& ledger);
// Without proof, and with a nonce of its own. `has_lane_rings`: the quota has room for them.
wire::Grant grant_for(const Session& session, const Config& config, const Identity& identity,
                      const wire::RegionLayout& layout, bool has_lane_rings);
// Whether both sides can have a ring for each lane; whether there is room for them is the quota's matter.
bool can_have_lane_rings(const Session& session);
transport::RegionShape shape_of(const wire::Grant& granted);

}  // namespace egret::backend
