// What a paradigm would do on a card: the least of what each part of the two hosts allows, computed from the verbs that
// were counted in a run. Nothing here knows a paradigm: other counts are another prediction.
//
//   counted verbs of both sides, by type and size ─▶ terms: each a rate that one part allows ─▶ the least of them
//
// In-bound and out-bound verbs take a card's time from two pools that do not take it from each other: the papers' figures
// need that (paper 004 serves 11.26 M/s READs and posts 2.11 M/s WRITEs on one card). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "bench_nic/nic.h"
#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

using bench_nic::Nic;

// What was posted for `ops` ops, and what cannot be counted. 0: not known, and then no limit.
struct Counted {
  VerbCounts clients;  // all together
  VerbCounts servers;
  double ops = 0;
  double server_cores = 0;
  double server_ns = 0;     // a core's time for an op
  double client_pairs = 0;  // queue pairs that the server's card has
  double words = 0;         // that atomics fall on
  bool words_are_cold = false;
  double under_way = 0;    // ops, of all clients together
  double round_trips = 0;  // of an op, one after the other
  double round_trip_us = 0;
};

struct Term {
  std::string what;  // "the server's card, in-bound verbs"
  double rate = 0;   // M ops/s that it allows
};
struct Prediction {
  double rate = 0;          // M ops/s; 0 if nothing limits it
  std::vector<Term> terms;  // the tightest first
};

Prediction predict(const Nic& nic, const Counted& counted);

}  // namespace egret::bench_paradigms
