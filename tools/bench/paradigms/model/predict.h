// What a paradigm would do on a card: the least of what each part of the hosts allows, computed from the verbs that were
// counted in a run. Nothing here knows a paradigm: other counts are another prediction.
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
  double server_cores = 0;      // that post
  double server_ns = 0;         // a core's time for an op
  double client_pairs = 0;      // queue pairs that the server's card has
  double client_hosts = 0;      // each with such a card
  double client_threads = 0;    // threads of each of these hosts that post verbs
  bool words_are_cold = false;  // atomics fall on more words than the card's cache holds
  double under_way = 0;         // ops, of all clients together
};

struct Term {
  std::string what;  // "the server's card, in-bound verbs"
  double rate = 0;   // M ops/s that it allows
};
struct Prediction {
  double rate = 0;          // M ops/s; 0 if nothing limits it
  std::vector<Term> terms;  // the tightest first
  // Verbs that the server's card had to do, and whose rate is not known for it: "in-bound WRITE". With one of these, `rate`
  // is what cannot be exceeded, and not what is expected.
  std::vector<std::string> unknown;

  bool is_known() const { return !terms.empty() && unknown.empty(); }
};

Prediction predict(const Nic& nic, const Counted& counted);

}  // namespace egret::bench_paradigms
