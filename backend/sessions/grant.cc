#include "backend/sessions/grant.h"

#include <algorithm>
#include <string>

#include <unistd.h>

#include "access/quota.h"
#include "access/rights.h"
#include "base/random.h"

namespace egret::backend {

using base::Status;

namespace {

// The size that the client asks for, but at most the backend's own.
uint32_t slot_size(uint32_t own, uint32_t wanted) {
  return wanted == 0 ? own : std::clamp(wanted / 64 * 64, std::min(wire::kMinSlotSize, own), own);
}

const SessionSize& size_for(const transport::Limits& limits, const Config& config) {
  if (limits.fetch_is_local) return config.local_session;
  return limits.results_are_pushed ? config.tcp_session : config.rdma_session;
}

op::Rights rights_of(const Session& session, const Config& config) {
  access::Peer peer{.secret = session.secret.name};
  if (const transport::PeerUser* const user = session.endpoint->user()) {
    peer.has_user = true;
    peer.uid = user->uid;
    peer.gids = user->gids;
  }
  return config.rights.of(peer, ::geteuid());
}

bool has_wake_timers(const Session& session) {
  return session.endpoint->limits().fetch_is_local && (session.hello.features & wire::kWakeTimers) != 0;
}

}  // namespace

base::Expected<wire::RegionLayout> layout_for(const Session& session, const Config& config,
                                              const access::Ledger& ledger) {
  const SessionSize& size = size_for(session.endpoint->limits(), config);
  const std::string& peer = session.endpoint->peer_group();
  const uint64_t most = std::min(size.most_memory, access::room_for_slots(config.quota, ledger, peer));
  const bool takes_long = (session.hello.features & wire::kLongSlots) != 0;
  const uint32_t response_slot = takes_long ? size.response_slot : std::min(size.response_slot, wire::kMaxSlotSize);
  wire::RegionLayout layout{config.partitions, std::min(size.window, std::max(session.hello.window, wire::kMinWindow)),
                            slot_size(size.request_slot, session.hello.request_slot_size),
                            slot_size(response_slot, session.hello.response_slot_size)};
  while (layout.window > wire::kMinWindow && layout.bytes() > most) --layout.window;
  if (layout.bytes() > size.most_memory) {
    return Status::error("session_memory is " + std::to_string(size.most_memory) +
                         " bytes, the smallest session takes " + layout.to_string());
  }
  const std::string excess = access::memory_excess(config.quota, ledger, peer, layout.bytes());
  if (!excess.empty()) return Status::error(excess);
  return layout;
}

bool can_have_lane_rings(const Session& session) {
  return has_wake_timers(session) && (session.hello.features & wire::kLaneRings) != 0;
}

wire::Grant grant_for(const Session& session, const Config& config, const Identity& identity,
                      const wire::RegionLayout& layout, bool has_lane_rings) {
  const transport::Limits& limits = session.endpoint->limits();
  const uint64_t asked = session.hello.features;
  const bool is_fetched = !limits.fetch_is_local && !limits.results_are_pushed;
  uint64_t features = asked & (wire::kRights | wire::kSlotSizes | wire::kFailover | wire::kWarm | wire::kComeBack |
                               wire::kEmbedded | wire::kLongSlots);
  if (session.secret.secret.is_set()) features |= wire::kAuthenticate;
  if (limits.is_ordered) features |= asked & wire::kOrderedMemory;
  if (has_wake_timers(session)) features |= wire::kWakeTimers;
  if (has_lane_rings) features |= wire::kLaneRings;
  if (is_fetched) features |= asked & wire::kDeliver;
  return {.features = features,
          .session_id = session.id,
          .nonce = base::random_u64(),
          .epoch = identity.epoch,
          .hash_seed = identity.hash_seed,
          .item_size_max = config.item_size_max,
          .layout = layout,
          .rights = rights_of(session, config)};
}

transport::RegionShape shape_of(const wire::Grant& granted) {
  const wire::RegionLayout& layout = granted.layout;
  return {.lanes = layout.lanes,
          .request_bytes = layout.request_bytes(),
          .response_bytes = layout.response_bytes(),
          .reply_bytes = layout.response_slot_size,
          .has_wake_timers = (granted.features & wire::kWakeTimers) != 0,
          .has_lane_rings = (granted.features & wire::kLaneRings) != 0};
}

}  // namespace egret::backend
