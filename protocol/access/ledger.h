// Which connections and sessions there are, by peer and by worker, so that one more costs the same whether there are ten
// others or ten thousand.
//
//   arrive ─▶ admit ─▶ take_memory ─▶ open ─▶ close ─▶ forget
//        └───────┴──────────┴─ turn_away ──────────▶ forget       forget at any time
//
// Connections are known by numbers that grow with every one. Thread: the control thread. Memory: some hundred bytes for
// each connection, peer and worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace egret::access {

class Ledger {
 public:
  // A connection whose handshake is not finished, or that is turned away.
  void arrive(uint64_t connection, const std::string& peer);
  // It has proved who it is: from here it takes a place, as a session of this worker.
  void admit(uint64_t connection, uint64_t worker);
  // It has so much memory until it is forgotten; once. The number of its peer: that of the peer's other sessions, else the
  // smallest that no peer has.
  uint32_t take_memory(uint64_t connection, uint64_t bytes);
  // So many descriptors, for the rings of its lanes, until it is forgotten; once.
  void take_rings(uint64_t connection, uint64_t rings);
  void open(uint64_t connection);
  // It gets no session, and may go on reading why.
  void turn_away(uint64_t connection);
  // It neither arrives nor takes a place any more, but has its memory, and its worker gets no other session, until it is
  // forgotten.
  void close(uint64_t connection);
  void forget(uint64_t connection);

  // Neither open nor closing, in the order in which they came.
  const std::set<uint64_t>& arriving() const { return arriving_; }
  // Admitted and not forgotten, in the order in which they were admitted.
  const std::vector<uint64_t>& of_worker(uint64_t worker) const;
  // Places taken, without those of this worker; the same of one peer.
  size_t places_besides(uint64_t worker) const;
  size_t places_besides(uint64_t worker, const std::string& peer) const;
  size_t places_of(const std::string& peer) const;
  // Of those that have not been forgotten.
  uint64_t bytes_of(const std::string& peer) const;
  uint64_t bytes() const { return bytes_; }
  uint64_t rings_of(const std::string& peer) const;
  uint64_t rings() const { return rings_; }
  // Entries that were looked up or walked over by all calls so far.
  uint64_t steps() const { return steps_; }

 private:
  struct Peer {
    size_t connections = 0, places = 0, with_memory = 0;
    uint64_t bytes = 0, rings = 0;
    uint32_t number = 0;  // while with_memory > 0
  };
  using Peers = std::map<std::string, Peer>;
  struct Connection {
    Peers::iterator peer;
    uint64_t worker = 0, bytes = 0, rings = 0;
    bool is_admitted = false, takes_place = false;
  };

  Connection& at(uint64_t connection) const;
  size_t places_of(uint64_t worker, const Peers::iterator* of_peer) const;
  void leave_place(Connection& connection);
  void leave_worker(uint64_t number, Connection& connection);
  uint32_t take_number();

  mutable std::unordered_map<uint64_t, Connection> connections_;  // for at()
  std::unordered_map<uint64_t, std::vector<uint64_t>> workers_;
  mutable Peers peers_;  // whose iterators connections_ holds
  std::set<uint64_t> arriving_;
  std::set<uint32_t> free_numbers_;  // below numbers_
  uint32_t numbers_ = 0;
  size_t places_ = 0;
  uint64_t bytes_ = 0, rings_ = 0;
  mutable uint64_t steps_ = 0;
};

}  // namespace egret::access
