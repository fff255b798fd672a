#include "access/quota.h"

#include <algorithm>

namespace egret::access {

namespace {

constexpr const char* kAdvice = ": raise it on the backend, or lower the proxies' workers";

std::string number(uint64_t value) {
  return std::to_string(value);
}

uint64_t memory_share(const Quota& quota, const Ledger& ledger, const std::string& peer) {
  return share_of_peer(quota.memory.value, ledger.bytes(), ledger.bytes_of(peer), kPlacesOfAnyPeer * quota.least_bytes);
}

}  // namespace

std::string to_string(const Ceiling& ceiling) {
  return number(ceiling.value) + (ceiling.arithmetic.empty() ? "" : " (auto: " + ceiling.arithmetic + ")");
}

std::string place_excess(const Quota& quota, const Ledger& ledger, uint64_t worker, const std::string& peer) {
  const uint64_t taken = ledger.places_besides(worker);
  if (taken >= quota.sessions.value) {
    return "max_sessions = " + to_string(quota.sessions) + ", and " + number(taken) + " sessions are open already" +
           kAdvice;
  }
  const uint64_t own = ledger.places_besides(worker, peer);
  const std::string has = peer + " has " + number(own) + " open already (one for each worker of its proxies)";
  if (quota.sessions_of_peer == Quota::kShare) {
    if (own < share_of_peer(quota.sessions.value, taken, own, kPlacesOfAnyPeer)) return "";
    return "sessions_per_peer = auto: " + has +
           ", no more than its share of max_sessions = " + to_string(quota.sessions) + ", of which " +
           number(quota.sessions.value - taken) +
           " are free, for others: raise either on the backend, or lower the proxies' workers";
  }
  if (own < quota.sessions_of_peer) return "";
  return "sessions_per_peer = " + number(quota.sessions_of_peer) + ", and " + has + kAdvice;
}

uint64_t sessions_told_of_peer(const Quota& quota) {
  return quota.sessions_of_peer == Quota::kShare ? 0 : std::min(quota.sessions_of_peer, quota.sessions.value);
}

uint64_t room_for_slots(const Quota& quota, const Ledger& ledger, const std::string& peer) {
  const uint64_t room = room_of_session(quota.memory.value, ledger.bytes(), quota.least_bytes);
  if (quota.memory_of_peer != Quota::kShare) return room;
  const uint64_t share = memory_share(quota, ledger, peer);
  return std::min(room, share - std::min(share, ledger.bytes_of(peer)));
}

bool has_room_for_rings(const Quota& quota, const Ledger& ledger, const std::string& peer, uint64_t rings) {
  const uint64_t own = ledger.rings_of(peer);
  return own + rings <= share_of_peer(quota.lane_rings, ledger.rings(), own, 0);
}

std::string memory_excess(const Quota& quota, const Ledger& ledger, const std::string& peer, uint64_t bytes) {
  const uint64_t own = ledger.bytes_of(peer);
  const bool is_share = quota.memory_of_peer == Quota::kShare;
  if (!is_share && quota.memory_of_peer != kUnlimited && own + bytes > quota.memory_of_peer) {
    return "session_memory_per_peer = " + number(quota.memory_of_peer) + ", and sessions of " + peer + " hold " +
           number(own) + " bytes already" + kAdvice;
  }
  if (bytes <= room_for_slots(quota, ledger, peer)) return "";
  const std::string total = "session_memory_total = " + to_string(quota.memory) + ", and all sessions hold " +
                            number(ledger.bytes()) + " bytes already";
  const std::string wanted = ": " + number(bytes) + " more have no room";
  if (!is_share || bytes > room_of_session(quota.memory.value, ledger.bytes(), quota.least_bytes)) {
    return total + wanted + kAdvice;
  }
  return "session_memory_per_peer = auto: sessions of " + peer + " hold " + number(own) + " bytes, and " +
         number(bytes) + " more are beyond its share: " + total +
         ": raise either on the backend, or lower the proxies' workers";
}

}  // namespace egret::access
