// Puts load on one session at a time, as a proxy worker that has more ops than fit the window: fills messages, sends
// each as soon as it is full, and checks every result.
//
//   Items ─ peek, take ─▶ ClientLane::append … fetch ─▶ Judge::on_result ─ is_right? ─▶ counts
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "bench_rpc/items.h"
#include "rpc/client_session.h"

namespace egret::bench_rpc {

struct DriverCounts {
  uint64_t ops = 0;  // answered in full
  // Gets whose value was cut, since a new session does not know yet how many values of this size fit a message.
  uint64_t cut = 0;
  uint64_t wrong = 0;
  uint64_t messages = 0;
  uint64_t waited_ns = 0;  // time of passes without work: all messages sent, none answered

  DriverCounts& operator+=(const DriverCounts& other);
  DriverCounts operator-(const DriverCounts& before) const;
};

class Driver {
 public:
  // `ops_per_message`: a message is sent when it has so many, or when no more fit; 0: when no more fit.
  Driver(Items& items, uint32_t ops_per_message, const base::Clock& clock);
  ~Driver();

  // Sends random ops until `until_ns` of the clock or `stop`, then waits until all are answered.
  base::Status run(rpc::ClientSession& session, uint64_t until_ns, const std::atomic<bool>& stop);
  // Stores all items for the first time.
  base::Status fill(rpc::ClientSession& session, const std::atomic<bool>& stop);

  const DriverCounts& counts() const { return counts_; }

 private:
  struct Judge;
  bool send_drawn(rpc::ClientSession& session);
  bool send_fill(rpc::ClientSession& session);
  Judge* append(rpc::ClientSession& session, const op::Op& op);
  template <typename More>
  base::Status pump(rpc::ClientSession& session, const std::atomic<bool>& stop, More more);
  void begin(rpc::ClientSession& session);

  Items& items_;
  const uint32_t ops_per_message_;
  const base::Clock& clock_;
  std::vector<std::unique_ptr<Judge>> judges_;  // by lane
  uint32_t filled_ = 0;
  DriverCounts counts_;
};

}  // namespace egret::bench_rpc
