// Whether another connection may be accepted, and the wake-up of a frontend that waits for room.
#include <thread>

#include <doctest/doctest.h>
#include <poll.h>

#include "proxy/client/connection_gate.h"

using egret::proxy::ConnectionGate;

namespace {
bool is_told(const ConnectionGate& gate, int wait_ms = 0) {
  pollfd ready{gate.fd(), POLLIN, 0};
  return ::poll(&ready, 1, wait_ms) == 1;
}
}  // namespace

TEST_CASE("there is room below the limit") {
  ConnectionGate gate;
  CHECK(gate.has_room(1));
  gate.enter();
  CHECK_FALSE(gate.has_room(1));
  CHECK(gate.has_room(2));
  gate.leave();
  CHECK(gate.has_room(1));
  CHECK_FALSE(is_told(gate));  // nobody waited
}

TEST_CASE("a frontend that waits is woken once, and does not wait if there is room") {
  ConnectionGate gate;
  CHECK_FALSE(gate.wait_for_room(1));
  gate.enter();
  gate.leave();
  CHECK_FALSE(is_told(gate));
  gate.enter();
  gate.enter();
  CHECK(gate.wait_for_room(2));
  CHECK_FALSE(is_told(gate));
  gate.leave();
  CHECK(is_told(gate));
  gate.take_notice();
  gate.leave();
  CHECK_FALSE(is_told(gate));
}

TEST_CASE("no leaving is missed, whenever it comes") {
  ConnectionGate gate;
  for (int i = 0; i < 3'000; ++i) {
    gate.enter();
    std::thread thread([&gate] { gate.leave(); });
    const bool must_be_told = gate.wait_for_room(1);
    if (must_be_told) {
      REQUIRE(is_told(gate, 10'000));
      gate.take_notice();
    }
    thread.join();
    REQUIRE(gate.has_room(1));
  }
}
