// Which connections and sessions there are, by peer and by worker.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "access/ledger.h"

using egret::access::Ledger;

namespace {

enum class State { kArrived, kAway, kAdmitted, kMaking, kOpen, kClosing };

struct Known {
  std::string peer;
  uint64_t worker = 0, bytes = 0;
  uint32_t number = 0;
  State state = State::kArrived;
  bool takes_place() const { return state == State::kAdmitted || state == State::kMaking || state == State::kOpen; }
};

// The same, by looking at all of them.
struct All {
  std::map<uint64_t, Known> known;

  template <typename Is>
  size_t count(const Is& is) const {
    return static_cast<size_t>(std::ranges::count_if(known, [&](const auto& each) { return is(each.second); }));
  }
  uint64_t bytes_of(const std::string& peer) const {
    uint64_t bytes = 0;
    for (const auto& [id, each] : known) bytes += each.peer == peer ? each.bytes : 0;
    return bytes;
  }
  uint32_t number_for(const std::string& peer) const {
    std::vector<bool> taken(known.size() + 1);
    for (const auto& [id, each] : known) {
      if (each.bytes == 0) continue;
      if (each.peer == peer) return each.number;
      taken.at(each.number) = true;
    }
    return static_cast<uint32_t>(std::ranges::find(taken, false) - taken.begin());
  }
};

}  // namespace

TEST_CASE("who is admitted takes a place until it closes; its memory and its worker are its until it is forgotten") {
  Ledger ledger;
  ledger.arrive(1, "host");
  CHECK(ledger.arriving().contains(1));
  CHECK(ledger.places_besides(0) == 0);
  ledger.admit(1, 7);
  CHECK(ledger.arriving().contains(1));
  CHECK(ledger.places_besides(0) == 1);
  CHECK(ledger.places_besides(0, "host") == 1);
  CHECK(ledger.places_besides(7) == 0);
  CHECK(ledger.of_worker(7) == std::vector<uint64_t>{1});
  CHECK(ledger.take_memory(1, 100) == 0);
  CHECK(ledger.bytes() == 100);
  CHECK(ledger.arriving().contains(1));
  ledger.open(1);
  CHECK(!ledger.arriving().contains(1));
  ledger.close(1);
  CHECK(ledger.places_besides(0) == 0);
  CHECK(ledger.bytes_of("host") == 100);
  CHECK(ledger.of_worker(7) == std::vector<uint64_t>{1});
  ledger.forget(1);
  CHECK(ledger.bytes_of("host") == 0);
  CHECK(ledger.of_worker(7).empty());
}

TEST_CASE("descriptors for rings of lanes are counted until their session is forgotten, and by peer") {
  Ledger ledger;
  for (const uint64_t id : {1, 2, 3}) {
    ledger.arrive(id, id < 3 ? "host" : "other");
    ledger.admit(id, id);
    ledger.take_rings(id, 10 * id);
  }
  CHECK(ledger.rings() == 60);
  CHECK(ledger.rings_of("host") == 30);
  CHECK(ledger.rings_of("other") == 30);
  CHECK(ledger.rings_of("nobody") == 0);
  ledger.close(2);
  CHECK(ledger.rings_of("host") == 30);
  ledger.forget(2);
  CHECK(ledger.rings_of("host") == 10);
  CHECK(ledger.rings() == 40);
}

TEST_CASE("who is turned away takes no place, and is still a connection that arrives") {
  Ledger ledger;
  ledger.arrive(1, "host");
  ledger.admit(1, 7);
  ledger.turn_away(1);
  CHECK(ledger.places_besides(0) == 0);
  CHECK(ledger.of_worker(7).empty());
  CHECK(ledger.arriving().contains(1));
  ledger.forget(1);
  CHECK(ledger.arriving().empty());
}

TEST_CASE("sessions of a peer have its number, and a number that is free again is the next one's") {
  Ledger ledger;
  const auto open = [&](uint64_t id, const std::string& peer) {
    ledger.arrive(id, peer);
    ledger.admit(id, id);
    const uint32_t number = ledger.take_memory(id, 1);
    ledger.open(id);
    return number;
  };
  CHECK(open(1, "a") == 0);
  CHECK(open(2, "b") == 1);
  CHECK(open(3, "c") == 2);
  CHECK(open(4, "b") == 1);
  ledger.forget(2);
  CHECK(open(5, "d") == 3);
  ledger.forget(4);
  CHECK(open(6, "e") == 1);
}

TEST_CASE("whatever comes and goes, all figures are those of looking at everyone") {
  std::mt19937_64 chance{1};
  Ledger ledger;
  All all;
  uint64_t next = 1;
  for (int step = 0; step < 20'000; ++step) {
    const std::string peer = "peer " + std::to_string(chance() % 6);
    const uint64_t worker = chance() % 20;
    if (all.known.size() < 40 && chance() % 3 == 0) {
      ledger.arrive(next, peer);
      all.known[next++].peer = peer;
    } else if (!all.known.empty()) {
      auto& [id, one] = *std::next(all.known.begin(), static_cast<ptrdiff_t>(chance() % all.known.size()));
      if (one.state == State::kArrived) {
        ledger.admit(id, worker);
        one.worker = worker;
        one.state = State::kAdmitted;
      } else if (one.state == State::kAdmitted && chance() % 4 != 0) {
        one.number = all.number_for(one.peer);
        one.bytes = 1 + chance() % 1000;
        CHECK(ledger.take_memory(id, one.bytes) == one.number);
        one.state = State::kMaking;
      } else if (one.state == State::kMaking && chance() % 4 != 0) {
        ledger.open(id);
        one.state = State::kOpen;
      } else if (one.state == State::kAdmitted || one.state == State::kMaking) {
        ledger.turn_away(id);
        one.state = State::kAway;
      } else if (one.state == State::kOpen && chance() % 2 == 0) {
        ledger.close(id);
        one.state = State::kClosing;
      } else {
        ledger.forget(id);
        all.known.erase(id);
      }
    }
    CHECK(ledger.places_besides(worker) ==
          all.count([&](const Known& each) { return each.takes_place() && each.worker != worker; }));
    CHECK(ledger.places_besides(worker, peer) == all.count([&](const Known& each) {
      return each.takes_place() && each.worker != worker && each.peer == peer;
    }));
    CHECK(ledger.bytes_of(peer) == all.bytes_of(peer));
    CHECK(ledger.places_of(peer) ==
          all.count([&](const Known& each) { return each.takes_place() && each.peer == peer; }));
    uint64_t bytes = 0;
    for (const auto& [id, each] : all.known) bytes += each.bytes;
    CHECK(ledger.bytes() == bytes);
    CHECK(ledger.arriving().size() ==
          all.count([](const Known& each) { return each.state != State::kOpen && each.state != State::kClosing; }));
    CHECK(ledger.of_worker(worker).size() == all.count([&](const Known& each) {
      return each.state != State::kArrived && each.state != State::kAway && each.worker == worker;
    }));
  }
}

// What the control thread asks and tells of one session, from its arrival to its end.
uint64_t steps_of_a_life(size_t others, size_t peers) {
  Ledger ledger;
  for (uint64_t id = 1; id <= others; ++id) {
    ledger.arrive(id, "peer " + std::to_string(id % peers));
    ledger.admit(id, id);
    ledger.take_memory(id, 4096);
    ledger.open(id);
  }
  const uint64_t id = others + 1;
  const std::string peer = "peer " + std::to_string(1 % peers);
  const uint64_t before = ledger.steps();
  ledger.arrive(id, peer);
  ledger.places_besides(id);
  ledger.places_besides(id, peer);
  ledger.places_of(peer);
  ledger.of_worker(id);
  ledger.admit(id, id);
  ledger.of_worker(id);
  ledger.bytes_of(peer);
  ledger.take_memory(id, 4096);
  ledger.open(id);
  ledger.close(id);
  ledger.forget(id);
  ledger.of_worker(id);
  return ledger.steps() - before;
}

TEST_CASE("a session costs the same steps whether there are ten others or ten thousand, of few peers or of many") {
  const uint64_t steps = steps_of_a_life(10, 1);
  CHECK(steps < 30);
  for (const size_t others : {100UL, 10'000UL}) {
    for (const size_t peers : {1UL, 10UL, 10'000UL}) CHECK(steps_of_a_life(others, peers) == steps);
  }
}
