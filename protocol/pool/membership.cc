#include "pool/membership.h"

#include <algorithm>
#include <map>
#include <utility>

#include "transport/address.h"

namespace egret::pool {

MemberStats::MemberStats(size_t workers) {
  for (size_t worker = 0; worker < workers; ++worker) sessions.push_back(std::make_shared<rpc::SessionCounters>());
}

size_t MemberStats::open_sessions() const {
  size_t open = 0;
  for (const auto& session : sessions) open += session->is_open.get();
  return open;
}

size_t MemberStats::open_sessions_by(std::string_view transport) const {
  const uint64_t number = transport::number_of_transport(transport);
  return static_cast<size_t>(
      std::ranges::count_if(sessions, [&](const auto& session) { return session->transport.get() == number; }));
}

Membership::Membership(PlacementRule rule, std::span<const Member> members, size_t workers,
                       std::initializer_list<const Membership*> before, std::span<const Member> gutter)
    : placement_(rule, members), gutter_placement_(PlacementRule::kRendezvous, gutter) {
  std::map<std::pair<std::string_view, std::string_view>, const Entry*> known;
  for (const Membership* const one : before) {
    version_ = std::max(version_, one->version());
    for (const Entry& entry : one->all()) known[{entry.member.name, entry.member.address}] = &entry;
  }
  ++version_;
  entries_.reserve(members.size() + gutter.size());
  for (const std::span<const Member> part : {members, gutter}) {
    for (const Member& member : part) {
      const auto it = known.find({member.name, member.address});
      entries_.push_back({member, it != known.end() ? it->second->stats : std::make_shared<MemberStats>(workers)});
    }
  }
}

bool Membership::is_same(PlacementRule rule, std::span<const Member> members, std::span<const Member> gutter) const {
  return placement_.rule() == rule && std::ranges::equal(this->members(), members, {}, &Entry::member) &&
         std::ranges::equal(this->gutter(), gutter, {}, &Entry::member);
}

}  // namespace egret::pool
