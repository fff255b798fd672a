// The receiving side of a point of SENDs: threads that take what arrives, note what each buffer now holds, and post its
// RECV again; and, when all is quiet, the comparison. RECVs stay posted from one point to the next.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bench_verbs/pairs/pair_set.h"

namespace egret::bench_verbs {

class Receivers {
 public:
  // The slots are prepared. Starts at once.
  Receivers(const Point& point, PairSet& pairs);
  ~Receivers();  // stops, too
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

  // The senders have ended, after `sent` SENDs: waits until all have arrived, or nothing more comes. `ops` and `ops_per_s`
  // are what came after the warm-up, which begins with the first arrival; `received` is all.
  Figures finish(uint64_t sent);

 private:
  struct Taken {
    uint64_t first_ns = 0, last_ns = 0;
    uint64_t in_window = 0;
    std::atomic<uint64_t> all{0};
    uint64_t strange = 0;  // bytes of messages that have another length
  };
  void run(uint32_t thread);
  void take(const ibv_wc& wc, uint64_t now, Taken& taken);
  std::vector<ibv_cq*> queues_of(uint32_t thread) const;
  uint64_t received() const;
  void wait_for_quiet(uint64_t sent) const;
  void stop();
  bool take_rest();  // after stop: what has come since; whether there was anything
  uint64_t compare();
  uint64_t wrong() const;

  const Point point_;
  PairSet& pairs_;
  std::vector<uint64_t> held_;  // of each buffer: the label of what came last, kNothing or kLate
  std::vector<std::unique_ptr<Taken>> taken_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace egret::bench_verbs
