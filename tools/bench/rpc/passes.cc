#include "bench_rpc/passes.h"

#include <algorithm>

#include "bench/monotonic.h"
#include "rpc/active/active_sessions.h"

namespace egret::bench_rpc {
namespace {

constexpr int kPasses = 2000;
constexpr int kRepeats = 9;  // the least counts: the others were interrupted

template <typename Pass>
double least_ns(Pass pass) {
  uint64_t least = UINT64_MAX;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const uint64_t begin = bench::monotonic_ns();
    for (int i = 0; i < kPasses; ++i) pass();
    least = std::min(least, bench::monotonic_ns() - begin);
  }
  return static_cast<double>(least) / kPasses;
}

}  // namespace

// The steps are those of the proxy's worker.
PassCost measure_passes(Crowd& crowd) {
  rpc::ActiveSessions active;
  for (size_t i = 0; i < crowd.size(); ++i) active.add(crowd.at(i));
  active.begin_pass();  // those with nothing to do go: all
  active.begin_pass();
  PassCost cost;
  cost.ns = least_ns([&] {
    active.begin_pass();
    active.flush();
    active.fetch();
    active.hand_out_credit();
    active.should_spin();
    active.has_appended();
  });
  cost.touching_all_ns = least_ns([&] {
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).begin_pass();
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).flush();
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).fetch();
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).credit().hand_out();
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).should_spin();
    for (size_t i = 0; i < crowd.size(); ++i) crowd.at(i).lanes().has_open();
  });
  return cost;
}

}  // namespace egret::bench_rpc
