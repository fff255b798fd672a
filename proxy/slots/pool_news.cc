#include "proxy/slots/pool_news.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pool/gutter/stand_in.h"
#include "proxy/slots/slot_rules.h"
#include "transport/address.h"

namespace egret::proxy {

using wire::MemberState;

std::string PoolNews::add(std::unique_ptr<transport::ServerEndpoint>& endpoint, op::Rights rights) {
  const size_t of_user = static_cast<size_t>(std::ranges::count_if(
      clients_, [&](const auto& each) { return each.second->endpoint->peer_group() == endpoint->peer_group(); }));
  if (clients_.size() >= kMostClients || of_user >= kMostOfOneUser)
    return "too many clients listen to news of the pool";
  auto client = std::make_unique<Client>();
  client->news = this;
  client->number = next_++;
  client->rights = rights;
  client->readable = events::Event::on_fd<&Client::on_readable>(loop_, endpoint->control_fd(),
                                                                events::kRead | events::kPersist, *client);
  if (const base::Status added = client->readable.add(); !added) return added.message();
  client->endpoint = std::move(endpoint);
  client->writable =
      events::Event::on_fd<&Client::on_writable>(loop_, client->endpoint->control_fd(), events::kWrite, *client);
  Client& added_client = *clients_.emplace(client->number, std::move(client)).first->second;
  count_.set(clients_.size());
  tell(added_client);
  return {};
}

// A client says nothing more: this is its end.
void PoolNews::on_readable(Client& client) {
  std::array<std::byte, wire::kMaxPoolFrame> frame{};
  size_t length = 0;
  if (client.endpoint->receive_frame(frame, length) && length == 0) return;
  const uint64_t number = client.number;
  clients_.erase(number);
  count_.set(clients_.size());
}

void PoolNews::publish(std::shared_ptr<const pool::Membership> membership, std::shared_ptr<const pool::Health> health,
                       const Config& config) {
  const auto timeout_ms = static_cast<uint32_t>(config.session.op_timeout_ns / 1'000'000);
  if (is_restricted(config) != is_restricted_ || timeout_ms != op_timeout_ms_) ++edition_;
  membership_ = std::move(membership);
  health_ = std::move(health);
  is_restricted_ = is_restricted(config);
  op_timeout_ms_ = timeout_ms;
  states_.clear();
  for (const auto& member : membership_->members()) states_.push_back(state_of(member));
  for (const auto& [number, client] : clients_) tell(*client);
}

MemberState PoolNews::state_of(const pool::Membership::Entry& member) const {
  if (!health_->is_ejected(*member.stats)) return MemberState::kServing;
  return member.stats->health.is_held_back.get() != 0 && member.stats->health.is_ejected.get() == 0
             ? MemberState::kHeldBack
             : MemberState::kEjected;
}

uint8_t PoolNews::ways_to(const pool::Member& member) const {
  if (is_restricted_) return wire::kByRelay;
  const bool is_here = transport::transport_of(member.address) == "shm";
  return static_cast<uint8_t>(wire::kByRelay | (is_here ? wire::kStraight : wire::kStraightOnRequest));
}

wire::MemberFrame PoolNews::frame_of(uint32_t index) const {
  const pool::Member& member = membership_->members()[index].member;
  return {.version = membership_->version(),
          .tag = pool::tag_of(member.name),
          .index = index,
          .weight = member.weight,
          .state = states_[index],
          .ways = ways_to(member),
          .name = member.name,
          .address = member.address};
}

void PoolNews::tell(Client& client) {
  if (membership_->version() == 0 || send_all(client)) return;
  // Full, or gone: then it is readable, too. If it cannot be watched either, it is told with the next change.
  [[maybe_unused]] const base::Status watched = client.writable.add();
}

// Sends what the client does not know yet, from where it stopped. False: its socket takes no more.
bool PoolNews::send_all(Client& client) const {
  const auto send = [&](const std::vector<std::byte>& frame) {
    return client.endpoint->send_frame(frame, false).is_ok();
  };
  const uint64_t version = membership_->version();
  if (client.told != version || client.edition != edition_) {
    const wire::PoolHead head{.version = version,
                              .members = static_cast<uint32_t>(states_.size()),
                              .rights = client.rights,
                              .placement = static_cast<uint8_t>(membership_->placement().rule()),
                              .is_restricted = is_restricted_,
                              .op_timeout_ms = op_timeout_ms_};
    if (!send(encode(head))) return false;
    client.told = version;
    client.edition = edition_;
    client.told_states.clear();
  }
  while (client.told_states.size() < states_.size()) {
    const auto index = static_cast<uint32_t>(client.told_states.size());
    if (!send(encode(frame_of(index)))) return false;
    client.told_states.push_back(states_[index]);
  }
  for (uint32_t index = 0; index < states_.size(); ++index) {
    if (client.told_states[index] == states_[index]) continue;
    if (!send(encode(wire::MemberStateFrame{version, index, states_[index]}))) return false;
    client.told_states[index] = states_[index];
  }
  return true;
}

}  // namespace egret::proxy
