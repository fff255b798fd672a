// Which connection is closed when too many have not authenticated.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "access/newcomers.h"

using namespace egret::access;

namespace {

// Connections as they came, and those that were ended to make room.
struct Door {
  void knock(const std::string& peer, int times = 1) {
    for (int i = 0; i < times; ++i) {
      waiting.push_back({++last, peer});
      std::vector<Newcomer> newcomers;
      for (const auto& [connection, who] : waiting) newcomers.push_back({connection, who});
      const auto ended = connection_to_end(newcomers);
      if (ended) std::erase_if(waiting, [&](const auto& each) { return each.first == *ended; });
    }
  }
  size_t waiting_of(const std::string& peer) const {
    return static_cast<size_t>(std::ranges::count_if(waiting, [&](const auto& each) { return each.second == peer; }));
  }
  std::vector<std::pair<uint64_t, std::string>> waiting;
  uint64_t last = 0;
};

}  // namespace

TEST_CASE("connections that wait for us count for their peer alone") {
  std::vector<Newcomer> newcomers;
  std::vector<std::string> peers;
  for (int peer = 0; peer < 100; ++peer) peers.push_back("10.0.0." + std::to_string(peer));
  for (uint64_t i = 0; i < 100; ++i) newcomers.push_back({i + 1, peers[i], true});
  CHECK_FALSE(connection_to_end(newcomers));
  for (uint64_t i = 0; i < kMostNewcomers; ++i) newcomers.push_back({i + 101, peers[i]});
  CHECK_FALSE(connection_to_end(newcomers));
  newcomers.push_back({500, peers[99]});
  CHECK(connection_to_end(newcomers));
  newcomers.clear();
  for (uint64_t i = 0; i <= kMostNewcomersOfOnePeer; ++i) newcomers.push_back({i + 1, peers[0], true});
  CHECK(connection_to_end(newcomers) == 1);
}

TEST_CASE("one peer's silent connections make room for its own") {
  Door door;
  door.knock("uid 1", 100);
  CHECK(door.waiting_of("uid 1") == kMostNewcomersOfOnePeer);
  CHECK(door.waiting.front().first == 100 - kMostNewcomersOfOnePeer + 1);
}

TEST_CASE("an honest handshake among silent connections of several peers is not the one that is closed") {
  Door door;
  door.knock("honest");
  door.knock("10.0.0.1", 200);
  door.knock("10.0.0.2", 200);
  door.knock("10.0.0.3", 200);
  CHECK(door.waiting_of("honest") == 1);
  CHECK(door.waiting.size() == kMostNewcomers);
  door.knock("honest", 3);
  CHECK(door.waiting_of("honest") == 4);
}

TEST_CASE("as many peers as there are places, one connection each: the newest of one more peer goes on") {
  Door door;
  for (size_t peer = 0; peer <= kMostNewcomers; ++peer) door.knock("10.0.0." + std::to_string(peer));
  CHECK(door.waiting.size() == kMostNewcomers);
  CHECK(door.waiting_of("10.0.0." + std::to_string(kMostNewcomers)) == 1);
}

TEST_CASE("while whoever would be ended has only just come, further ones had better wait") {
  std::vector<std::string> peers;
  for (size_t peer = 0; peer < 2 * kMostNewcomers; ++peer) peers.push_back("10.0.0." + std::to_string(peer));
  std::vector<Newcomer> newcomers;
  for (uint64_t i = 0; newcomers.size() < kMostNewcomers; ++i) {
    CHECK_FALSE(should_wait(newcomers));  // there is room
    newcomers.push_back({.connection = i + 1, .peer = peers[i], .is_young = true});
  }
  CHECK(should_wait(newcomers));
  newcomers[1].is_young = false;
  CHECK(should_wait(newcomers));  // the oldest is another one
  newcomers[0].is_young = false;
  CHECK_FALSE(should_wait(newcomers));
  CHECK_FALSE(connection_to_end(newcomers));
}

TEST_CASE("one peer's many connections make others wait for only as long as its oldest is young") {
  std::vector<Newcomer> newcomers;
  for (uint64_t i = 0; i < kMostNewcomersOfOnePeer; ++i) {
    newcomers.push_back({.connection = i + 1, .peer = "10.0.0.1", .is_young = true});
  }
  newcomers.push_back({.connection = 100, .peer = "10.0.0.2"});
  CHECK(should_wait(newcomers));
  newcomers[0].is_young = false;
  CHECK_FALSE(should_wait(newcomers));
}

TEST_CASE("few connections stay") {
  CHECK_FALSE(connection_to_end({}));
  Door door;
  door.knock("uid 1", 20);
  door.knock("uid 2", 20);
  CHECK(door.waiting.size() == 40);
}
