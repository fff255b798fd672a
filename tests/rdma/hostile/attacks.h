// What a hostile peer tries, each attack in sessions of its own against one live backend. An attack returns when the
// device and the backend have answered as they should, and throws Failure when they have not.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "session.h"

namespace egret::hostile {

struct Attack {
  const char* name;
  void (*run)(const sockaddr_in& target);
};

std::span<const Attack> attacks_on_memory();     // verbs that reach where they must not
std::span<const Attack> attacks_on_handshake();  // connecting, and frames
std::span<const Attack> attacks_on_joining();    // further queue pairs of a session
std::span<const Attack> attacks_on_slots();      // rings, wants, requests
std::span<const Attack> attacks_by_leaving();    // silence, hanging up, dying

// Within this the backend has hung up, or it does not.
inline constexpr double kEndPatience = 8;

// The device refuses the verb, and that costs the session it was posted in.
void expect_refused(Session& session, const Work& work, const std::string& what);
// The session is over.
void expect_ended(Connection& connection, const std::string& what);
// An honest session of our own is served, on every lane.
void expect_served(Session& session, const std::string& tag);

}  // namespace egret::hostile
