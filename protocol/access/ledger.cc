#include "access/ledger.h"

#include <algorithm>

namespace egret::access {

void Ledger::arrive(uint64_t connection, const std::string& peer) {
  ++steps_;
  const auto of_peer = peers_.try_emplace(peer).first;
  ++of_peer->second.connections;
  connections_.emplace(connection, Connection{.peer = of_peer});
  arriving_.insert(connection);
}

void Ledger::admit(uint64_t connection, uint64_t worker) {
  Connection& admitted = at(connection);
  admitted.worker = worker;
  admitted.is_admitted = admitted.takes_place = true;
  ++admitted.peer->second.places;
  ++places_;
  workers_[worker].push_back(connection);
}

uint32_t Ledger::take_memory(uint64_t connection, uint64_t bytes) {
  Connection& holder = at(connection);
  holder.bytes = bytes;
  Peer& peer = holder.peer->second;
  peer.bytes += bytes;
  bytes_ += bytes;
  if (peer.with_memory++ == 0) peer.number = take_number();
  return peer.number;
}

void Ledger::take_rings(uint64_t connection, uint64_t rings) {
  Connection& holder = at(connection);
  holder.rings = rings;
  holder.peer->second.rings += rings;
  rings_ += rings;
}

void Ledger::open(uint64_t connection) {
  ++steps_;
  arriving_.erase(connection);
}

void Ledger::turn_away(uint64_t connection) {
  Connection& away = at(connection);
  leave_place(away);
  leave_worker(connection, away);
}

void Ledger::close(uint64_t connection) {
  arriving_.erase(connection);
  leave_place(at(connection));
}

void Ledger::forget(uint64_t connection) {
  ++steps_;
  const auto known = connections_.find(connection);
  if (known == connections_.end()) return;
  Connection& gone = known->second;
  arriving_.erase(connection);
  leave_place(gone);
  leave_worker(connection, gone);
  Peer& peer = gone.peer->second;
  peer.bytes -= gone.bytes;
  peer.rings -= gone.rings;
  bytes_ -= gone.bytes;
  rings_ -= gone.rings;
  if (gone.bytes > 0 && --peer.with_memory == 0) free_numbers_.insert(peer.number);
  if (--peer.connections == 0) peers_.erase(gone.peer);
  connections_.erase(known);
}

Ledger::Connection& Ledger::at(uint64_t connection) const {
  ++steps_;
  return connections_.at(connection);
}

const std::vector<uint64_t>& Ledger::of_worker(uint64_t worker) const {
  ++steps_;
  static const std::vector<uint64_t> none;
  const auto known = workers_.find(worker);
  return known == workers_.end() ? none : known->second;
}

// The worker's places; `of_peer`: only those.
size_t Ledger::places_of(uint64_t worker, const Peers::iterator* of_peer) const {
  return static_cast<size_t>(std::ranges::count_if(of_worker(worker), [&](uint64_t each) {
    const Connection& connection = at(each);
    return connection.takes_place && (of_peer == nullptr || connection.peer == *of_peer);
  }));
}

size_t Ledger::places_besides(uint64_t worker) const {
  return places_ - places_of(worker, nullptr);
}

size_t Ledger::places_besides(uint64_t worker, const std::string& peer) const {
  ++steps_;
  auto of_peer = peers_.find(peer);
  return of_peer == peers_.end() ? 0 : of_peer->second.places - places_of(worker, &of_peer);
}

uint64_t Ledger::bytes_of(const std::string& peer) const {
  ++steps_;
  const auto known = peers_.find(peer);
  return known == peers_.end() ? 0 : known->second.bytes;
}

uint64_t Ledger::rings_of(const std::string& peer) const {
  ++steps_;
  const auto known = peers_.find(peer);
  return known == peers_.end() ? 0 : known->second.rings;
}

size_t Ledger::places_of(const std::string& peer) const {
  ++steps_;
  const auto known = peers_.find(peer);
  return known == peers_.end() ? 0 : known->second.places;
}

void Ledger::leave_place(Connection& connection) {
  if (!connection.takes_place) return;
  connection.takes_place = false;
  --connection.peer->second.places;
  --places_;
}

void Ledger::leave_worker(uint64_t number, Connection& connection) {
  if (!connection.is_admitted) return;
  connection.is_admitted = false;
  const auto known = workers_.find(connection.worker);
  steps_ += known->second.size();
  std::erase(known->second, number);
  if (known->second.empty()) workers_.erase(known);
}

uint32_t Ledger::take_number() {
  ++steps_;
  if (free_numbers_.empty()) return numbers_++;
  return free_numbers_.extract(free_numbers_.begin()).value();
}

}  // namespace egret::access
