// Several connections that send batches in turn, so that the server has work while the generator checks answers. Only
// for benchmarks in which no op needs the result of another. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "bench/client/address.h"
#include "bench_cache/item_client.h"

namespace egret::bench_cache {

class Crew {
 public:
  static constexpr uint32_t kClients = 4;

  static base::Expected<Crew> connect(const bench::Address& address);

  using Compose = std::function<void(uint64_t batch, ItemClient& client)>;
  using Judged = std::function<void(uint64_t batch, const Answers& answers)>;
  // Sends and checks batches 0 .. batches - 1 in this order, with up to kClients of them outstanding. Ends early,
  // without an error, when `stop` is set; batches that were sent are still checked.
  base::Status run(uint64_t batches, const Compose& compose, const Judged& judged, const std::atomic<bool>& stop);

 private:
  std::vector<ItemClient> clients_;
};

}  // namespace egret::bench_cache
