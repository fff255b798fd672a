// The listening side's way to measure one point, with the hosts it is measured with; and what all points add up to.
// The first trouble ends everything: from then on points are not measured, and `failure` says why.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "bench_verbs/measurement.h"
#include "bench_verbs/poster.h"
#include "bench_verbs/station.h"

namespace egret::bench_verbs {

class Runner {
 public:
  using Say = std::function<void(const std::string&)>;
  Runner(const Wanted& wanted, const std::vector<Station*>& stations, const Say& say, const std::atomic<bool>& stop)
      : wanted_(wanted), stations_(stations), say_(say), stop_(stop) {}

  // A point of the pairs that rdma_cm has connected, as many for each thread as is wanted.
  Point make_point(Kind kind, uint32_t size, uint32_t threads, bool pipelined);
  uint32_t next_number() { return ++number_; }  // of a point
  // The other sides post; or this one does, to the first `clients`.
  Figures inbound(const Point& point);
  Figures outbound(const Point& point, size_t clients);
  Figures outbound(const Point& point) { return outbound(point, stations_.size()); }
  // Counts a point that was measured, and says so.
  void tell(const std::string& what, const Figures& figures);

  bool fail(const std::string& why);
  bool is_over() { return !failure_.empty() || stop_.load(); }
  const std::string& failure() const { return failure_; }
  const Wanted& wanted() const { return wanted_; }
  const std::vector<Station*>& stations() const { return stations_; }
  Results& results() { return results_; }

 private:
  bool told(Station& station, const Message& message);
  bool prepare_clients(const Point& point, const std::vector<Station*>& targets);
  bool check_clients(const Point& point, const std::vector<Station*>& targets, Figures& figures);

  const Wanted& wanted_;
  const std::vector<Station*>& stations_;
  const Say& say_;
  const std::atomic<bool>& stop_;
  Results results_;
  uint32_t number_ = 0;
  std::string failure_;
};

}  // namespace egret::bench_verbs
