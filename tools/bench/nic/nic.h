// What a network card can do, as far as a model of rates needs to know (bench_paradigms/model): the cards of the papers, and
// any other from a file, which `egret-bench verbs --nic-file FILE` writes from what it has measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::bench_nic {

// A rate that depends on the size: M/s at these numbers of bytes, ascending. Between two points the time of a verb is
// interpolated; before the first it is the first's; after the last it grows as between the last two. Empty: not known.
struct RateCurve {
  struct At {
    double bytes = 0;
    double rate = 0;
  };
  std::vector<At> points;

  bool is_known() const { return !points.empty(); }
  double microseconds(double bytes) const;  // of the card's time for one verb; 0 if not known
};

// All rates are M/s of verbs, of the whole card. 0: not known, and then no limit.
struct Nic {
  std::string name;
  std::string source;  // where the figures are from
  RateCurve read_in;   // READs that this card serves
  RateCurve write_in;
  // WRITEs that it posts, by the number of posting threads (`bytes` is that number).
  RateCurve write_out;
  double receive = 0;        // SENDs that it receives, of 1 byte and more
  double receive_empty = 0;  // of none
  double send_batched = 0;   // SENDs that it posts, several by one doorbell
  double send_single = 0;    // one by one
  double send_empty = 0;     // of no byte, or of immediate data alone
  double atomic = 0;         // atomics that it serves
  double atomic_cold = 0;    // on more words than its cache holds
  // On one word. Those on few words wait for each other: contended * min(words, sqrt(pi / 2 * words)), at most `atomic`:
  // how many are under way before one falls on a word that is taken. 0: they do not wait.
  double atomic_contended = 0;
  double link_gbps = 0;
  double link_share = 0.88;  // that payload and heads of a verb can have
  double dma_mbps = 0;       // of PCIe
  double mmio_lines = 0;     // M/s of 64 bytes, by which work requests are posted one at a time
  // Its cache holds C queue pairs. With Q > C in use a verb takes t0 + m * (1 - C / Q) ns instead of t0.
  double pairs_cached = 0;
  double uc_pairs_cached = 0;  // where it holds more of those; 0: as many
  double pair_hit_ns = 0;
  double pair_miss_ns = 0;
  double round_trip_us = 0;  // of a small READ alone
};

// cx2, cx3-40, cx3-56, cib: the cards of papers 000, 004, 001 with 002, and 002; cx6: one public measurement.
std::span<const Nic> known_nics();
// One of these by its name, or a file that to_json has written.
base::Expected<Nic> read_nic(const std::string& name_or_file);
std::string to_json(const Nic& nic);

}  // namespace egret::bench_nic
