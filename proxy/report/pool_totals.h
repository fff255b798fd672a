// What `stats` adds up over the backends of the pool, so that a sum of events never becomes less: a backend that leaves, is
// down or starts again takes nothing of what it has counted out of the sum.
//
//   a worker's FanOut ─ rows of each backend ─▶ PoolTotals ─ each backend's last rows, and those of its earlier lives ─▶ sums
//
// Only `stats reset` sets the sums back, by whichever proxy: a backend of the same life that has counted less than before
// was reset, and then nothing of earlier lives, or of backends that have left, is added any more.
// A proxy knows what it has seen: what a backend counted after the last `stats` before it left is not in the sum, and
// another proxy, or this one after a restart, may have another sum.
//
// Thread: any worker's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/counter.h"
#include "op/stats.h"
#include "pool/fan_out.h"
#include "pool/membership.h"
#include "rpc/lane_counters.h"

namespace egret::proxy {

class PoolTotals {
 public:
  // Backends that have left are known one by one, so that one that returns is not counted twice, as long as there are no
  // more than so many; then they are added up.
  static constexpr size_t kMostMembers = 4096;

  struct Totals {
    uint64_t of(op::StatId id) const;  // a row that counts events: !op::is_level()
    std::vector<uint64_t> store;       // indexed by StatId
    rpc::LaneCounters lanes;           // all lanes of all sessions since the start, of members that have left, too
    base::Counter deliveries;
  };
  // Takes in the answers to `stats`, which was asked at `asked_ns`.
  Totals take(const pool::FanOut& answers, uint64_t asked_ns, uint64_t now_ns, const pool::Membership& membership);
  // `stats reset`.
  void reset(const pool::Membership& membership);

 private:
  // One backend.
  struct Known {
    std::vector<uint64_t> last;     // its rows, as they were last
    std::vector<uint64_t> earlier;  // sums of its earlier lives
    uint64_t pid = 0;
    uint64_t started_ns = 0;  // about when, by our clock
    uint64_t seen_ns = 0;     // when `last` was answered
    bool is_member = false;
  };

  void take_in(const pool::FanOut::Answered& answer, uint64_t asked_ns, uint64_t now_ns);
  void forget_earlier();
  void know(const pool::Membership& membership);
  void add_lanes(Totals& totals);

  std::mutex mutex_;
  std::map<std::string, Known> known_;                  // by name and address
  std::vector<uint64_t> gone_;                          // sums of those that are not known one by one any more
  std::set<std::shared_ptr<pool::MemberStats>> lanes_;  // of members, and of those whose last sessions are ending
  rpc::LaneCounters gone_lanes_;                        // of the others
  base::Counter gone_deliveries_;
};

}  // namespace egret::proxy
