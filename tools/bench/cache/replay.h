// Plays a trace to one server as a read-through cache does: get; on a miss, set. Overwrites are sets without a get.
//
//   Trace::next() -> the key's lane -> a batch: fills of what the last one missed, overwrites, gets -> ItemClient ->
//   judged
//
// A key has one lane (connection) for good, and ops of a connection on a key take effect in the order sent; so the
// version that a hit must carry is known exactly, and an answer from the past is wrong. A key that is missed twice in a
// batch is filled once. One thread. Nothing else may write to the server, which is empty at the start.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/address.h"
#include "bench_cache/item_client.h"
#include "bench_cache/trace.h"

namespace egret::bench_cache {

struct ReplayCounts {
  uint64_t gets = 0;
  uint64_t misses = 0;
  uint64_t scan_gets = 0;    // of gets
  uint64_t scan_misses = 0;  // of misses
  uint64_t sets = 0;
  uint64_t refused = 0;  // of sets
  uint64_t wrong = 0;    // answers with another content than was set last, or after their time
  double seconds = 0;
};

class Replay {
 public:
  static constexpr uint32_t kLanes = 4;
  static constexpr uint32_t kBatchGets = 100;

  // `trace` outlives it.
  Replay(Trace& trace, const bench::Address& address);
  base::Status connect();

  // The next `requests` of the trace, as fast as answers come or, if `rate` is not 0, no faster than so many
  // requests/s. All are answered when it returns. Ends early, without an error, when `stop` is set.
  base::Status run(uint64_t requests, double rate, const std::atomic<bool>& stop, ReplayCounts& counts);

  const std::string& first_wrong() const { return first_wrong_; }

 private:
  struct Get {
    uint32_t key;
    uint32_t version;  // that it must carry; also tells whether the key has been set again meanwhile
    bool is_scan;
    bool must_miss;  // its time is over, with ample room for clocks that go by the second
  };
  struct Lane {
    std::vector<ItemClient> client;  // one; none before connect()
    std::vector<uint32_t> overwrites;
    std::vector<Get> gets;       // collected for the next batch
    std::vector<Get> under_way;  // of the batch that has been sent
    std::vector<Get> fills;      // missed by the batch before
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
  std::vector<uint32_t> versions_;  // by key: of the last set; 0: none yet
  std::vector<uint32_t>
      until_s_;  // by key, of a trace that expires: seconds since the start, when a hit is wrong for sure
  Answers answers_;
  std::string first_wrong_;
};

}  // namespace egret::bench_cache
