// Replays a trace to one server as a read-through cache does: get; on a miss, set. Overwrites are sets without a get.
//
//   Trace::next() -> the key's lane -> a batch: fills of what the last one missed, overwrites, gets -> ItemClient ->
//   judged
//
// A key always uses the same lane (connection), and a connection's ops on a key take effect in order; so the version of
// a hit is known exactly, and an older one is wrong. A key that is missed twice in a batch is set once. One thread. The
// server is empty at the start, and nothing else may write to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/client/address.h"
#include "bench_cache/item_client.h"
#include "bench_cache/trace.h"

namespace egret::bench_cache {

struct ReplayCounts {
  uint64_t gets = 0;
  uint64_t misses = 0;
  uint64_t scan_gets = 0;    // part of `gets`
  uint64_t scan_misses = 0;  // part of `misses`
  uint64_t sets = 0;
  uint64_t refused = 0;  // part of `sets`
  uint64_t wrong = 0;    // values other than the one set last, or values that must have expired
  double seconds = 0;
};

class Replay {
 public:
  static constexpr uint32_t kLanes = 4;
  static constexpr uint32_t kBatchGets = 100;

  // `trace` outlives it.
  Replay(Trace& trace, const bench::Address& address);
  base::Status connect();

  // Replays the next `requests` of the trace, as fast as answers come or, if `rate` is not 0, at most at that rate
  // (requests/s). All are answered when it returns. Ends early, without an error, when `stop` is set.
  base::Status run(uint64_t requests, double rate, const std::atomic<bool>& stop, ReplayCounts& counts);

  const std::string& first_wrong() const { return first_wrong_; }

 private:
  struct Get {
    uint32_t key;
    uint32_t version;  // the expected one; shows also whether the key was set again meanwhile
    bool is_scan;
    bool must_miss;  // it must have expired, even by a clock that lags by kExpirySlackS
  };
  struct Lane {
    std::vector<ItemClient> client;  // exactly one after connect()
    std::vector<uint32_t> overwrites;
    std::vector<Get> gets;       // of the next batch
    std::vector<Get> under_way;  // of the batch that was sent
    std::vector<Get> fills;      // misses of the batch before, to be set
  };

  base::Status add(const Request& request, ReplayCounts& counts);
  base::Status send_batch(Lane& lane, ReplayCounts& counts);
  base::Status finish_batch(Lane& lane, ReplayCounts& counts);
  base::Status finish_all(ReplayCounts& counts);
  void judge_times(const Lane& lane, ReplayCounts& counts);
  void set(ItemClient& client, uint32_t key, uint64_t now_s);

  Trace& trace_;
  bench::Address address_;
  uint64_t start_ns_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> versions_;  // indexed by key: version of the last set; 0: none yet
  std::vector<uint32_t>
      until_s_;  // indexed by key, for a trace with expiry: from this second since the start on a hit is wrong
  Answers answers_;
  std::string first_wrong_;
};

}  // namespace egret::bench_cache
