// Which requests to connect a queue pair are accepted, that each of them, accepted or not, costs the peer, and how many receives a
// queue pair gets.
#include <doctest/doctest.h>

#include "transport/verbs/queue_sizes.h"
#include "transport/verbs_door.h"

using namespace egret::transport;
using namespace egret::transport::verbs;

namespace {

constexpr uint64_t kToken = 77;
const std::string kPeer = "10.9.0.1";
const JoinableSession kSession{.peer_group = kPeer, .joined = 1, .promised = 3};

// Lets in so many connections; each costs one, and so does what joins.
struct Purse final : Doorkeeper {
  explicit Purse(int many) : left(many) {}
  bool lets_in(const std::string& peer_group) override {
    CHECK(peer_group == kPeer);
    return left > 0 && left-- > 0;
  }
  void charge(const std::string& peer_group) override {
    CHECK(peer_group == kPeer);
    --left;
  }
  bool asks_for_proof() const override { return true; }
  uint32_t come_back_ms(const std::string& peer_group, bool came_back) override {
    CHECK(peer_group == kPeer);
    return came_back ? 0 : 70;
  }
  int left;
};

ConnectAnswer ask(const ConnectData& request, Doorkeeper* door, const JoinableSession* named = nullptr) {
  return answer_to(request, kPeer, named, door);
}

struct Rejected {
  ConnectData request;
  const JoinableSession* named;
  ConnectAnswer answer;
};

const JoinableSession kOfAnother{.peer_group = "10.9.0.66", .joined = 1, .promised = 3};
const JoinableSession kFull{.peer_group = kPeer, .joined = 3, .promised = 3};
const Rejected kRejected[] = {
    {{.index = 1, .queue_pairs = 3, .token = kToken}, nullptr, ConnectAnswer::kNotItsOwn},
    {{.index = 1, .queue_pairs = 3, .token = kToken}, &kOfAnother, ConnectAnswer::kNotItsOwn},
    {{.index = 2, .queue_pairs = 3, .token = kToken}, &kSession, ConnectAnswer::kNotItsOwn},
    {{.index = 3, .queue_pairs = 3, .token = kToken}, &kFull, ConnectAnswer::kNotItsOwn},
    {{.index = 1, .queue_pairs = 3, .token = 0}, nullptr, ConnectAnswer::kToldNothing},
    {{.magic = 0}, nullptr, ConnectAnswer::kOtherProtocol},
    {{.version = 9}, nullptr, ConnectAnswer::kOtherProtocol},
    {{.version = 9, .index = 1, .queue_pairs = 3, .token = kToken}, &kSession, ConnectAnswer::kOtherProtocol},
};

}  // namespace

TEST_CASE("each request that is rejected costs the peer, which is then turned away, whatever it asks for") {
  for (const Rejected& each : kRejected) {
    CAPTURE(static_cast<int>(each.answer));
    Purse door(3);
    for (int i = 0; i < 3; ++i) CHECK(ask(each.request, &door, each.named) == each.answer);
    CHECK(door.left == 0);
    CHECK(ask(each.request, &door, each.named) == ConnectAnswer::kTurnedAway);
    CHECK(ask({}, &door) == ConnectAnswer::kTurnedAway);
    CHECK(ask(each.request, nullptr, each.named) == each.answer);
  }
}

TEST_CASE("a first queue pair makes a session as long as the peer is let in") {
  Purse door(1);
  CHECK(ask({.queue_pairs = 16}, &door) == ConnectAnswer::kMakesSession);
  CHECK(ask({.queue_pairs = 16}, &door) == ConnectAnswer::kTurnedAway);
}

TEST_CASE("a queue pair that a session waits for costs as much, and is not turned away") {
  Purse door(0);
  const ConnectData awaited{.index = 1, .queue_pairs = 3, .token = kToken};
  CHECK(ask(awaited, &door, &kSession) == ConnectAnswer::kJoins);
  CHECK(door.left == -1);
  CHECK(ask(awaited, nullptr, &kSession) == ConnectAnswer::kJoins);
}

TEST_CASE("only who can be told is asked to come back, and the door hears of it that it did") {
  Purse door(1);
  CHECK(come_back_ms({.flags = kComesBack}, kPeer, &door) == 70);
  CHECK(come_back_ms({.flags = kComesBack | kCameBack}, kPeer, &door) == 0);
  CHECK(come_back_ms({.flags = kJoinsLate}, kPeer, &door) == 0);  // as release 0.1.0, which knows no flags
  CHECK(come_back_ms({.flags = kCameBack}, kPeer, &door) == 0);
  CHECK(come_back_ms({.flags = kComesBack}, kPeer, nullptr) == 0);
}

TEST_CASE("a queue pair has a receive for each message that may be under way on it, and some for frames") {
  CHECK(receives_for(16, 1, 2) == kFrameReceives + 32);
  CHECK(receives_for(16, 1, 64) == kFrameReceives + 1024);
  CHECK(receives_for(16, 4, 8) == kFrameReceives + 32);
  CHECK(receives_for(5, 4, 8) == kFrameReceives + 16);  // one of the four has two lanes
  CHECK(receives_for(1, 16, 8) == kFrameReceives + 8);
  CHECK(receives_for(16, 1, 0) == 64);  // a peer of release 0.1.0
  CHECK(server_sends_for(16, 1, 2) == kFrameReceives + 32);
  CHECK(server_sends_for(16, 1, 64) == kServerSends);
  CHECK(server_sends_for(16, 1, 0) == kServerSends);  // a peer of release 0.1.0
  CHECK(client_sends_for(16, 1, 2) == kFrameReceives + 128);
  CHECK(client_sends_for(16, 1, 64) == kClientSends);
  // A peer that asks for a window of 1 is granted 2.
  CHECK(receives_for(16, 1, 1) == receives_for(16, 1, 2));
  CHECK(server_sends_for(16, 1, 1) == server_sends_for(16, 1, 2));
  CHECK(client_sends_for(16, 1, 1) == client_sends_for(16, 1, 2));
  // Whatever a peer claims:
  CHECK(receives_for(1u << 31, 0, 255) == kFrameReceives + 256 * 64);
}
