// What a listener answers to a request to connect a queue pair, and what it costs the peer: each request costs a part
// of the peer's rate (Doorkeeper), also one that is rejected, so nobody can have a backend reject without end. Only the
// further queue pairs of a session that waits for them are never turned away because of the rate.
// Thread: the listener's.
#pragma once

#include <cstdint>
#include <string>

#include "transport/transport.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

enum class ConnectAnswer : uint8_t {
  kMakesSession,
  kJoins,
  kTurnedAway,     // the peer connects too often
  kOtherProtocol,  // or another version
  kToldNothing,    // a further queue pair that has no token: what there is to say, its first one is told
  kNotItsOwn,      // a token of no session, of another peer's, or out of turn
};

// A session that takes further queue pairs.
struct JoinableSession {
  std::string peer_group;
  uint32_t joined = 0;    // queue pairs, of
  uint32_t promised = 1;  // so many
};

// `named`: the session of the request's token; null: there is none. `doorkeeper` may be null: nobody is asked.
ConnectAnswer answer_to(const ConnectData& request, const std::string& peer_group, const JoinableSession* named,
                        Doorkeeper* doorkeeper);

// Of a request that makes a session: 0, or after how many milliseconds its peer is told to come back.
uint32_t come_back_ms(const ConnectData& request, const std::string& peer_group, Doorkeeper* doorkeeper);

}  // namespace egret::transport::verbs
