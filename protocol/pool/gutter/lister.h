// Asks each partition of the gutter which owners' keys were changed there, over a worker's own sessions: one op a
// partition, so that many proxies may ask often.
//
//   start() ─ an op on each lane ─▶ pages ─▶ is_over(), take() ─▶ Looks (control thread)
//
// Thread: the worker's. Memory: a round is allocated by start(), and frees itself after its last answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "op/records.h"
#include "pool/membership.h"
#include "pool/pool.h"

namespace egret::pool {

// What a partition of the gutter says of an owner.
struct Listed {
  std::shared_ptr<const MemberStats> gutter;  // who it is
  uint64_t epoch = 0;                         // of its process
  uint32_t partition = 0;
  uint32_t partitions = 0;
  op::ChangedOwner owner{};
};
using Listing = std::vector<Listed>;

class Lister final {
 public:
  Lister() = default;
  ~Lister();
  Lister(const Lister&) = delete;
  Lister& operator=(const Lister&) = delete;

  // Asks those that are open. An earlier round is forgotten.
  void start(const Pool& pool);
  bool is_over() const { return round_ == nullptr; }
  // What was answered in the last round that is over.
  Listing take() { return std::move(listing_); }

 private:
  class Round;
  void forget();

  Round* round_ = nullptr;  // deletes itself
  Listing listing_;
};

}  // namespace egret::pool
