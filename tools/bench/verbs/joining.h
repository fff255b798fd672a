// How two stations come to a set of queue pairs that are made by hand: over the control connection.
//
//   listening side                                   connecting side
//   makes its own         kMake: what is to be made ─▶ makes its own
//                         ◀─ kMade: how many it got, why no more, its memory
//                         kJoin: how many they are, memory, then kNumbers ─▶ joins
//   joins                 ◀─ kJoined, then kNumbers
//
// What a device does not give is no failure of the measurement: it is said, and the set is not there.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench_verbs/station.h"

namespace egret::bench_verbs {

struct Joined {
  uint32_t pairs = 0;       // with each station, the same; 0: no set
  uint32_t read_depth = 1;  // of RC pairs
  std::string why;          // there are fewer than asked for
};

// The listening side, with all its stations. An error is trouble with a peer.
base::Expected<Joined> make_sets(const std::vector<Station*>& stations, const Making& making);

// The connecting side, when `message` is a kMake, until kJoined or a failure to make it has been told.
base::Status answer_make(Station& station, const Message& message);

}  // namespace egret::bench_verbs
