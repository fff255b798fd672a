#include "access/ledger.h"

#include <algorithm>

namespace egret::access {

void Ledger::arrive(uint64_t connection, const std::string& peer) {
  const auto of_peer = peers_.try_emplace(peer).first;
  ++of_peer->second.connections;
  connections_.emplace(connection, Connection{.peer = of_peer});
  arriving_.insert(connection);
}

void Ledger::admit(uint64_t connection, uint64_t worker) {
  Connection& admitted = connections_.at(connection);
  admitted.worker = worker;
  admitted.is_admitted = admitted.takes_place = true;
  ++admitted.peer->second.places;
  ++places_;
  workers_[worker].push_back(connection);
}

uint32_t Ledger::open(uint64_t connection, uint64_t bytes) {
  arriving_.erase(connection);
  Connection& opened = connections_.at(connection);
  opened.bytes = bytes;
  Peer& peer = opened.peer->second;
  peer.bytes += bytes;
  if (peer.with_memory++ == 0) peer.number = take_number();
  return peer.number;
}

void Ledger::turn_away(uint64_t connection) {
  Connection& away = connections_.at(connection);
  leave_place(away);
  leave_worker(connection, away);
}

void Ledger::close(uint64_t connection) {
  arriving_.erase(connection);
  leave_place(connections_.at(connection));
}

void Ledger::forget(uint64_t connection) {
  const auto at = connections_.find(connection);
  if (at == connections_.end()) return;
  Connection& gone = at->second;
  arriving_.erase(connection);
  leave_place(gone);
  leave_worker(connection, gone);
  Peer& peer = gone.peer->second;
  peer.bytes -= gone.bytes;
  if (gone.bytes > 0 && --peer.with_memory == 0) free_numbers_.insert(peer.number);
  if (--peer.connections == 0) peers_.erase(gone.peer);
  connections_.erase(at);
}

const std::vector<uint64_t>& Ledger::of_worker(uint64_t worker) const {
  static const std::vector<uint64_t> none;
  const auto at = workers_.find(worker);
  return at == workers_.end() ? none : at->second;
}

size_t Ledger::places_besides(uint64_t worker) const {
  const auto takes = [&](uint64_t each) { return connections_.at(each).takes_place; };
  return places_ - static_cast<size_t>(std::ranges::count_if(of_worker(worker), takes));
}

size_t Ledger::places_besides(uint64_t worker, const std::string& peer) const {
  const auto of_peer = peers_.find(peer);
  if (of_peer == peers_.end()) return 0;
  const auto takes = [&](uint64_t each) {
    const Connection& connection = connections_.at(each);
    return connection.takes_place && connection.peer == of_peer;
  };
  return of_peer->second.places - static_cast<size_t>(std::ranges::count_if(of_worker(worker), takes));
}

uint64_t Ledger::bytes_of(const std::string& peer) const {
  const auto at = peers_.find(peer);
  return at == peers_.end() ? 0 : at->second.bytes;
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
  const auto at = workers_.find(connection.worker);
  std::erase(at->second, number);
  if (at->second.empty()) workers_.erase(at);
}

uint32_t Ledger::take_number() {
  if (free_numbers_.empty()) return numbers_++;
  return free_numbers_.extract(free_numbers_.begin()).value();
}

}  // namespace egret::access
