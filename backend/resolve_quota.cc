#include "backend/resolve_quota.h"

#include <algorithm>

#include "access/ceilings.h"
#include "base/service/memory_room.h"
#include "base/service/program.h"
#include "base/text.h"
#include "transport/address.h"
#include "transport/doctor.h"

namespace egret::backend {

using base::Options;
using base::size_text;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kOtherMemory = 64 * kMiB;  // of the process, beside stores and slots
constexpr uint64_t kOtherDescriptors = 256;   // not of partitions, sessions or rings of lanes
constexpr uint64_t kDescriptorsOfPartition = 4;
constexpr uint64_t kOtherMappings = 2048;
// What an idle proxy's session over a network has by default: the proxy's options idle_window and idle_slot_size.
constexpr uint32_t kIdleWindow = 2;
constexpr uint32_t kIdleSlot = 1216;

// What sessions take, by the dearest of the transports that the backend listens at. `egret-bench fleet` counts it.
access::Needs needs_of(const Config& config) {
  const bool over_rdma = std::ranges::any_of(config.listen, transport::is_rdma);
  const bool only_rdma = std::ranges::all_of(config.listen, transport::is_rdma);
  const bool only_tcp = std::ranges::all_of(config.listen, transport::is_tcp);
  const bool here = std::ranges::any_of(
      config.listen, [](const auto& address) { return !transport::is_rdma(address) && !transport::is_tcp(address); });
  access::Needs needs{
      .other_descriptors = kOtherDescriptors + kDescriptorsOfPartition * config.partitions + config.quota.lane_rings,
      .other_mappings = kOtherMappings,
      .other_memory = config.memory + kOtherMemory,
      .descriptors = only_tcp ? 2u : 4u,
      .mappings = over_rdma && !here ? 0u : 2u,
      .is_pinned = over_rdma,
      .other_memory_text = "memory " + size_text(config.memory) + " - " + size_text(kOtherMemory)};
  needs.least_bytes = wire::RegionLayout{config.partitions, kIdleWindow, kIdleSlot, kIdleSlot}.bytes();
  needs.most_bytes = only_rdma ? config.rdma_session.most_memory : config.local_session.most_memory;
  if (over_rdma) needs.queue_bytes = transport::server_queue_bytes(config.partitions, 1, kIdleWindow);
  return needs;
}

access::Room room_of_host() {
  const base::MemoryRoom memory = base::memory_room();
  const auto known = [](uint64_t figure) { return figure == 0 ? access::kUnlimited : figure; };
  const transport::PinLimit pinned = transport::pin_limit({});
  return {.descriptors = known(base::most_descriptors()),
          .mappings = known(base::most_mappings()),
          .memory = known(memory.bytes),
          .memory_source = memory.source,
          .pinned = pinned.by_capability ? access::kUnlimited : pinned.bytes};
}

// Descriptors for rings of lanes. Where max_sessions is set, only those that so many sessions leave.
uint64_t lane_rings_of(const Options& options, const Config& config) {
  const bool may_have = std::ranges::any_of(config.listen, transport::is_shm) && config.partitions > 1 &&
                        config.partitions <= transport::kMostLaneRings;
  if (!may_have) return 0;
  const uint64_t rings = access::lane_rings_of(config.room);
  if (options.is_auto("max_sessions")) return rings;
  const access::Needs needs = needs_of(config);
  const auto sessions = static_cast<uint64_t>(options.integer("max_sessions"));
  const uint64_t others = needs.other_descriptors + needs.descriptors * sessions;
  return std::min(rings, config.room.descriptors - std::min(config.room.descriptors, others));
}

}  // namespace

void resolve_quota(const Options& options, Config& config) {
  const auto size = [&](const char* name, uint64_t automatic) {
    if (options.is_auto(name)) return automatic;
    return options.size(name) == 0 ? access::kUnlimited : options.size(name);
  };
  access::Quota& quota = config.quota;
  config.room = room_of_host();
  quota.lane_rings = lane_rings_of(options, config);
  config.needs = needs_of(config);
  quota.least_bytes = config.needs.least_bytes;
  quota.memory = access::slot_memory_of(config.room, config.needs);
  if (!options.is_auto("session_memory_total")) quota.memory = {size("session_memory_total", 0), ""};
  quota.sessions = access::most_sessions_of(config.room, config.needs, quota.memory.value);
  if (!options.is_auto("max_sessions")) quota.sessions = {static_cast<uint64_t>(options.integer("max_sessions")), ""};
  quota.memory_of_peer = size("session_memory_per_peer", access::Quota::kShare);
  const auto of_peer = static_cast<uint64_t>(options.integer("sessions_per_peer"));
  quota.sessions_of_peer = options.is_auto("sessions_per_peer") ? access::Quota::kShare
                           : of_peer == 0                       ? access::kUnlimited
                                                                : of_peer;
}

}  // namespace egret::backend
