// How many handshakes a peer may cause, and that other peers are not delayed by it.
#include <string>

#include <doctest/doctest.h>

#include "access/handshake_rate.h"

using namespace egret::access;

namespace {
constexpr uint64_t kSecond = 1'000'000'000;

// How many steps of a handshake the peer may take now, one token each.
int64_t steps(HandshakeRate& rate, const std::string& peer, uint64_t now_ns) {
  int64_t taken = 0;
  for (; rate.may_go_on(peer, now_ns); ++taken) rate.charge(peer, now_ns, 1);
  return taken;
}
}  // namespace

TEST_CASE("a peer takes a burst, then so much a second, and no more after a long pause") {
  HandshakeRate rate;
  CHECK(steps(rate, "uid 1", 5) == HandshakeRate::kBurst);
  CHECK(steps(rate, "uid 1", 5) == 0);
  CHECK(steps(rate, "uid 1", 5 + kSecond / 2) == HandshakeRate::kPerSecond / 2);
  CHECK(steps(rate, "uid 1", 1000 * kSecond) == HandshakeRate::kBurst);
}

TEST_CASE("one peer's flood leaves the others what they have") {
  HandshakeRate rate;
  steps(rate, "uid 1", 0);
  CHECK(steps(rate, "uid 2", 0) == HandshakeRate::kBurst);
}

TEST_CASE("sessions cost by their memory; a debt is paid before anything else, and has an end") {
  HandshakeRate rate;
  CHECK(HandshakeRate::cost_of_session(100'000) == 1);
  CHECK(HandshakeRate::cost_of_session(8 << 20) == 8);
  rate.charge("uid 1", 0, HandshakeRate::kBurst + HandshakeRate::kPerSecond);
  CHECK_FALSE(rate.may_go_on("uid 1", kSecond - 1));
  CHECK(rate.may_go_on("uid 1", kSecond + kSecond / 100));
  rate.charge("uid 2", 0, int64_t{1} << 60);
  CHECK_FALSE(rate.may_go_on("uid 2", kSecond));
  CHECK(rate.may_go_on("uid 2", 60 * kSecond));
}

TEST_CASE("who holds thousands of sessions may renew them within some seconds; who holds few may do no more for it") {
  HandshakeRate rate;
  constexpr int64_t kHeld = 4000;
  rate.holds("big", 0, kHeld);
  CHECK(steps(rate, "big", 0) == HandshakeRate::kBurst);  // what it has not earned yet it does not have
  CHECK(steps(rate, "big", kSecond) == HandshakeRate::kPerSecondPerSession * kHeld);
  CHECK(steps(rate, "big", 1000 * kSecond) == HandshakeRate::kBurstPerSession * kHeld);
  rate.holds("small", 0, 10);
  CHECK(steps(rate, "small", 0) == HandshakeRate::kBurst);
  CHECK(steps(rate, "small", kSecond) == HandshakeRate::kPerSecond);
  rate.holds("big", 1000 * kSecond, 0);
  CHECK(steps(rate, "big", 1001 * kSecond) == HandshakeRate::kPerSecond);
  CHECK(steps(rate, "big", uint64_t{1} << 62) == HandshakeRate::kBurst);
}

TEST_CASE("where an option allows every peer so many sessions, it may begin as many at once") {
  HandshakeRate rate;
  rate.allow(1000);
  CHECK(steps(rate, "a", 0) == HandshakeRate::kBurstPerSession * 1000);
  CHECK(steps(rate, "a", kSecond) == HandshakeRate::kPerSecondPerSession * 1000);
  rate.allow(3);
  CHECK(steps(rate, "b", 0) == HandshakeRate::kBurst);
}

TEST_CASE("however many peers come, only so many are remembered, and not those that came first are forgotten") {
  HandshakeRate rate;
  steps(rate, "flood", 0);
  for (int peer = 0; peer < 10'000; ++peer) rate.charge("10." + std::to_string(peer), 0, 1);
  CHECK(rate.remembered() == HandshakeRate::kMostPeers);
  CHECK_FALSE(rate.may_go_on("flood", 0));
}
