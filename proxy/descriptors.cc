#include "proxy/descriptors.h"

#include <algorithm>

#include "base/log/log.h"
#include "base/service/program.h"
#include "base/text.h"
#include "proxy/log_events.h"
#include "transport/address.h"
#include "transport/doctor.h"
#include "transport/transport.h"

namespace egret::proxy {

namespace {

constexpr uint64_t kOtherDescriptors = 256;  // besides clients and sessions
// At most. Over shared memory: the connection, its wake-up, and a ring for each lane.
constexpr uint64_t kDescriptorsPerSession = 16;
constexpr uint64_t kDescriptorsPerLocalSession = 2 + transport::kMostLaneRings;
constexpr uint64_t kDescriptorsPerSlotSession = 4;
constexpr uint64_t kLeastSlotSessions = 16;  // allowed even where the limit of open files leaves no room for them

// Backends that are reached through shared memory, as far as they are listed by address.
uint64_t local_backends(const Config& config) {
  const auto is_local = [](const pool::Member& member) { return transport::is_shm(member.address); };
  const auto is_local_entry = [&](const std::string& entry) {
    const auto member = pool::parse_member(entry);
    return member.is_ok() && is_local(member.value());
  };
  return static_cast<uint64_t>(std::ranges::count_if(gutter_of(config), is_local) +
                               std::ranges::count_if(config.directory.entries, is_local_entry));
}

}  // namespace

DescriptorNeed descriptor_need(const Config& config) {
  const uint64_t local = local_backends(config);
  const uint64_t others = most_backends(config) - local;
  DescriptorNeed need{
      .clients = config.max_connections,
      .sessions = config.workers * (kDescriptorsPerSession * others + kDescriptorsPerLocalSession * local),
      .slots = config.slots.is_on() ? kDescriptorsPerSlotSession * config.slots.most_sessions : 0,
      .others = kOtherDescriptors,
      .arithmetic = {}};
  need.arithmetic = std::to_string(need.clients) + " clients (max_connections) + ";
  const auto add = [&](uint64_t each, uint64_t backends, const char* which) {
    if (backends == 0) return;
    need.arithmetic += std::to_string(each) + " x " + base::counted(config.workers, "worker") + " x " +
                       base::counted(backends, "backend") + which + " + ";
  };
  add(kDescriptorsPerSession, others, "");
  add(kDescriptorsPerLocalSession, local, " over shm");
  need.arithmetic += std::to_string(need.others);
  return need;
}

uint64_t DescriptorNeed::connections_within(uint64_t limit) const {
  const uint64_t besides = sessions + others;
  return limit > besides ? std::min(clients, limit - besides) : 1;
}

void fit_connections(Config& config) {
  const DescriptorNeed need = descriptor_need(config);
  const uint64_t limit = base::raise_descriptor_limit(need.total() + need.slots);
  if (limit >= need.total() + need.slots) return;
  const uint64_t left = (limit - std::min(limit, need.total())) / kDescriptorsPerSlotSession;
  config.slots.most_sessions = static_cast<uint32_t>(std::max(left, kLeastSlotSessions));
  if (limit >= need.total()) return;
  const uint64_t possible = need.connections_within(limit);
  base::log(kFewDescriptors,
            "max_connections lowered from {} to {}: the limit of open files is {} (systemd: LimitNOFILE)",
            base::field("wanted", config.max_connections), base::field("max_connections", possible),
            base::field("limit", limit));
  config.max_connections = static_cast<uint32_t>(possible);
}

}  // namespace egret::proxy
