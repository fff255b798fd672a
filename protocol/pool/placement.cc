#include "pool/placement.h"

#include <array>
#include <cstdio>

namespace egret::pool {

namespace {

KetamaRing ring_of(std::span<const Member> members) {
  std::vector<KetamaServer> servers;
  servers.reserve(members.size());
  for (const Member& member : members) servers.push_back({member.name, member.weight});
  return KetamaRing(servers);
}

std::vector<double> weight_shares(std::span<const Member> members) {
  double total = 0;
  for (const Member& member : members) total += member.weight;
  std::vector<double> shares;
  shares.reserve(members.size());
  for (const Member& member : members) shares.push_back(member.weight / total);
  return shares;
}

std::string hex(uint32_t number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", number);
  return text.data();
}

}  // namespace

std::string_view to_string(PlacementRule rule) {
  return rule == PlacementRule::kKetama ? "ketama" : "rendezvous";
}

Placement::Placement(PlacementRule rule, std::span<const Member> members) {
  if (rule == PlacementRule::kKetama) {
    rule_ = ring_of(members);
    shares_ = ring()->shares();
  } else {
    rule_ = Rendezvous(members);
    shares_ = weight_shares(members);
  }
}

size_t Placement::order_of(std::string_view key, std::span<uint32_t> out) const {
  return ring() != nullptr ? ring()->order_of(key, out) : std::get<Rendezvous>(rule_).order_of(key, out);
}

std::string Placement::why(std::string_view key) const {
  if (size() == 0) return "the pool has no members";
  if (size() == 1) return "it is the only member";
  if (ring() != nullptr) {
    const KetamaRing::Place place = ring()->place_of(key);
    return "its hash " + hex(place.hash) + " is followed by the point " + hex(place.point) + " of the ring";
  }
  const auto& rendezvous = std::get<Rendezvous>(rule_);
  return "its hash " + hex(Rendezvous::hash_of(key)) + " gives the draw " +
         hex(rendezvous.draw_of(key, rendezvous.member_of(key))) + ", the best for the weights of " +
         std::to_string(size()) + " members";
}

}  // namespace egret::pool
