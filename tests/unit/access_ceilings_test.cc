// How many sessions there may be where the options leave it to the host, and what one peer may have of it.
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "access/ceilings.h"
#include "access/quota.h"

using namespace egret::access;

namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

Needs needs() {
  return {.other_descriptors = 256,
          .other_mappings = 2048,
          .other_memory = 128 * kMiB,
          .descriptors = 4,
          .mappings = 2,
          .least_bytes = 100 * kKiB,
          .most_bytes = kMiB,
          .queue_bytes = 128 * kKiB,
          .is_pinned = true,
          .other_memory_text = "memory 64MiB - 64MiB"};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the slots of all sessions may take half of what is left of the memory") {
  const Ceiling slots = slot_memory_of({.memory = 2 * kGiB + 5, .memory_source = "this host's"}, needs());
  CHECK(slots.value == (2 * kGiB - 128 * kMiB) / 2);
  CHECK(slots.arithmetic == "(this host's 2GiB - memory 64MiB - 64MiB) / 2");
  CHECK(slot_memory_of({.memory = 100 * kMiB}, needs()).value == kLeastSlotMemory);
  CHECK(slot_memory_of({}, needs()).value == kUnlimited);
}

TEST_CASE("over rdma they may take what may be pinned, but for each session's queues") {
  Room room{.memory = 64 * kGiB, .memory_source = "this host's", .pinned = 228 * kMiB};
  const Ceiling slots = slot_memory_of(room, needs());
  CHECK(slots.value == 1024 * 100 * kKiB);
  CHECK(slots.arithmetic == "228MiB that may be pinned, less 128KiB of queues for each session");
  CHECK(most_sessions_of(room, needs(), slots.value).value == 1024);
  room.pinned = 1;
  CHECK(slot_memory_of(room, needs()).value == needs().least_bytes);
  Needs local = needs();
  local.is_pinned = false;
  CHECK(slot_memory_of(room, local).value > kGiB);
}

TEST_CASE(
    "there are as many sessions as the scarcest of descriptors, mappings and slot memory allows, and it is said "
    "which") {
  const Ceiling by_files = most_sessions_of({.descriptors = 65536, .mappings = 65530}, needs(), 8 * kGiB);
  CHECK(by_files.value == (65536 - 256) / 4);
  CHECK(by_files.arithmetic == "(65536 descriptors - 256) / 4");
  const Ceiling by_mappings = most_sessions_of({.descriptors = 1'000'000, .mappings = 65530}, needs(), 8 * kGiB);
  CHECK(by_mappings.value == (65530 - 2048) / 2);
  CHECK(has(by_mappings.arithmetic, "mappings of memory"));
  const Ceiling by_memory = most_sessions_of({.descriptors = 65536}, needs(), 100 * kMiB);
  CHECK(by_memory.value == 1024);
  CHECK(by_memory.arithmetic == "100MiB of slots (session_memory_total) / 100KiB");
  CHECK(most_sessions_of({}, needs(), kUnlimited).value == kMostSessions);
  CHECK(most_sessions_of({.descriptors = 10}, needs(), kGiB).value == 1);
}

TEST_CASE("a thousand hosts of four workers and 16 partitions fit into what the unit gives on a host of 2 GiB") {
  Needs wanted = needs();
  wanted.least_bytes = 16 * (64 + 2 * (1216 + 1216));
  const Room room{.descriptors = 65536, .mappings = 65530, .memory = 2 * kGiB, .memory_source = "this host's"};
  CHECK(most_sessions_of(room, wanted, slot_memory_of(room, wanted).value).value >= 4000);
}

TEST_CASE("a peer alone may have half, and each of n greedy ones a part of n + 1: something is always left") {
  constexpr uint64_t kTotal = 12'000;
  for (const size_t peers : {1, 2, 3, 5, 11}) {
    std::map<size_t, uint64_t> own;
    uint64_t taken = 0;
    for (bool any = true; any;) {
      any = false;
      for (size_t peer = 0; peer < peers; ++peer) {
        if (own[peer] >= share_of_peer(kTotal, taken, own[peer], 0)) continue;
        ++own[peer];
        ++taken;
        any = true;
      }
    }
    for (const auto& [peer, has_now] : own) {
      CHECK(has_now >= kTotal / (peers + 1) - 1);
      CHECK(has_now <= kTotal / (peers + 1) + 1);
    }
    CHECK(taken < kTotal);
    CHECK(share_of_peer(kTotal, taken, 0, 0) > 0);
  }
}

TEST_CASE("what any peer may have at least it has as long as there is any; where there is no total there is no share") {
  CHECK(share_of_peer(1000, 990, 0, 64) == 10);
  CHECK(share_of_peer(1000, 960, 50, 64) == 64);
  CHECK(share_of_peer(1000, 1000, 50, 64) == 50);
  CHECK(share_of_peer(kUnlimited, 1000, 50, 64) == kUnlimited);
}

TEST_CASE("the last quarter of the memory is for idle sessions") {
  CHECK(room_of_session(1000, 0, 10) == 750);
  CHECK(room_of_session(1000, 700, 10) == 50);
  CHECK(room_of_session(1000, 745, 10) == 10);
  CHECK(room_of_session(1000, 995, 10) == 5);
  CHECK(room_of_session(1000, 1000, 10) == 0);
  CHECK(room_of_session(kUnlimited, 5, 10) == kUnlimited);
}

// --- who gets a session

namespace {

struct World {
  explicit World(Quota wanted) : quota(std::move(wanted)) {}
  std::string more(const std::string& peer) const { return place_excess(quota, ledger, 0, peer); }
  void open(const std::string& peer, uint64_t bytes) {
    ledger.arrive(++last, peer);
    ledger.admit(last, last);
    ledger.take_memory(last, bytes);
    ledger.open(last);
  }
  Quota quota;
  Ledger ledger;
  uint64_t last = 0;
};

Quota of(uint64_t sessions, uint64_t memory) {
  return {.sessions = {sessions, "a sum"}, .memory = {memory, "another sum"}, .least_bytes = 10};
}

}  // namespace

TEST_CASE("limits that options say hold as they are, and are named with their figures") {
  World world({.sessions = {3, ""}, .memory = {kUnlimited, ""}, .sessions_of_peer = 2, .memory_of_peer = 100});
  world.open("a", 60);
  CHECK(world.more("a").empty());
  world.open("a", 30);
  CHECK(
      world.more("a") ==
      "sessions_per_peer = 2, and a has 2 open already (one for each worker of its proxies): raise it on the backend, "
      "or lower the proxies' workers");
  CHECK(world.more("b").empty());
  CHECK(memory_excess(world.quota, world.ledger, "a", 10).empty());
  CHECK(has(memory_excess(world.quota, world.ledger, "a", 11),
            "session_memory_per_peer = 100, and sessions of a hold 90"));
  CHECK(memory_excess(world.quota, world.ledger, "b", 100).empty());
  world.open("b", 1);
  CHECK(world.more("b") ==
        "max_sessions = 3, and 3 sessions are open already: raise it on the backend, or lower the proxies' workers");
}

TEST_CASE("descriptors for rings of lanes are a small part of all, of which one peer leaves half") {
  CHECK(lane_rings_of({.descriptors = 65536}) == 2048);
  CHECK(lane_rings_of({.descriptors = 1024}) == 32);
  CHECK(lane_rings_of({}) == 4096);
  Quota quota = of(1000, kUnlimited);
  quota.lane_rings = 32;
  World world(quota);
  const auto open_with_rings = [&](const std::string& peer) {
    world.open(peer, 1);
    if (!has_room_for_rings(world.quota, world.ledger, peer, 3)) return false;
    world.ledger.take_rings(world.last, 3);
    return true;
  };
  for (int session = 0; session < 5; ++session) CHECK(open_with_rings("greedy"));
  CHECK_FALSE(open_with_rings("greedy"));
  CHECK(open_with_rings("other"));
  for (uint64_t id = 1; id <= world.last; ++id) world.ledger.forget(id);
  CHECK(open_with_rings("greedy"));
  CHECK_FALSE(has_room_for_rings(of(1000, kUnlimited), {}, "anybody", 1));
}

TEST_CASE("a session that replaces one of its worker needs no further place") {
  World world({.sessions = {1, ""}, .memory = {kUnlimited, ""}, .sessions_of_peer = 1});
  world.open("a", 1);
  CHECK_FALSE(world.more("a").empty());
  CHECK(place_excess(world.quota, world.ledger, world.last, "a").empty());
}

TEST_CASE("a peer alone gets half of the places and is then told the arithmetic; others still get theirs") {
  World world(of(1000, kUnlimited));
  while (world.more("greedy").empty()) world.open("greedy", 1);
  CHECK(world.ledger.places_of("greedy") == 500);
  CHECK(has(
      world.more("greedy"),
      "sessions_per_peer = auto: greedy has 500 open already (one for each worker of its proxies), no more than its "
      "share of max_sessions = 1000 (auto: a sum), of which 500 are free, for others"));
  for (int host = 0; host < 100; ++host) {
    for (int worker = 0; worker < 4; ++worker) {
      CHECK(world.more("host " + std::to_string(host)).empty());
      world.open("host " + std::to_string(host), 1);
    }
  }
}

TEST_CASE("places that an option counts out exactly are all given, whoever comes") {
  World world({.sessions = {400, ""}, .memory = {kUnlimited, ""}});
  for (int host = 0; host < 100; ++host) {
    for (int worker = 0; worker < 4; ++worker) {
      REQUIRE(world.more(std::to_string(host)).empty());
      world.open(std::to_string(host), 1);
    }
  }
  CHECK(has(world.more("0"), "max_sessions = 400, and 400"));
}

TEST_CASE("busy sessions leave room for idle ones, and one peer's for others'") {
  World world(of(1000, 10'000));
  while (room_for_slots(world.quota, world.ledger, "greedy") >= 500) world.open("greedy", 500);
  CHECK(world.ledger.bytes_of("greedy") <= 5000);
  CHECK(world.ledger.bytes_of("greedy") >= 4000);
  CHECK(has(memory_excess(world.quota, world.ledger, "greedy", 500),
            "session_memory_per_peer = auto: sessions of greedy hold "));
  CHECK(room_for_slots(world.quota, world.ledger, "other") >= 500);
  for (int host = 0; world.ledger.bytes() < 7500 - 500; ++host) world.open("busy " + std::to_string(host), 500);
  CHECK(room_for_slots(world.quota, world.ledger, "newcomer") <= 500);
  int idle = 0;
  while (memory_excess(world.quota, world.ledger, "idle " + std::to_string(idle), 10).empty()) {
    world.open("idle " + std::to_string(idle++), 10);
  }
  CHECK(idle > 250);
  CHECK(world.ledger.bytes() == 10'000);
  CHECK(has(
      memory_excess(world.quota, world.ledger, "late", 10),
      "session_memory_total = 10000 (auto: another sum), and all sessions hold 10000 bytes already: 10 more have no "
      "room: raise it"));
}
