// One end of what connects two hosts: the control connection, over which the listening side says what to do; the data
// queue pairs, in sets, with the memory that verbs come from and go to (pairs/).
//
// Thread: one at a time, but sets are the posting and receiving threads' during a point.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench_verbs/pairs/pair_set.h"
#include "bench_verbs/point.h"
#include "bench_verbs/verbs.h"

namespace egret::bench_verbs {

struct Message {
  enum class Type : uint32_t {
    kWelcome = 1,
    kHello,
    kPrepare,
    kReady,
    kRun,
    kFigures,
    kCheck,
    kChecked,
    kMake,     // a set of queue pairs; joining.h
    kMade,     // shape.queue_pairs of it; if these are fewer than asked for, text says why
    kJoin,     // with the listening side's memory; its numbers follow
    kNumbers,  // of queue pairs, in text
    kJoined,   // the same the other way, or text says why not
    kText,
    kEnd
  };
  Type type = Type::kEnd;
  uint32_t client = 0;  // kWelcome
  Shape shape;          // kWelcome
  Making making;        // kMake, kMade, kJoin
  uint64_t target_address = 0;
  uint32_t target_key = 0;
  uint32_t cpus = 0;      // kHello: that the client may use
  uint32_t emulated = 0;  // kHello
  uint32_t atomics = 0;   // kHello: the device has them
  double wake_us = 0;     // kHello: measure_wake_us()
  uint32_t length = 0;    // of text
  Point point;
  Figures figures;
  char text[256] = {};  // kText: a part of the report; kHello: the device; kFigures: what went wrong, if anything
  void set_text(const std::string& words);
  std::string words() const { return {text, length}; }
};

class Station {
 public:
  Station() = default;
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // The control connection, not connected yet: `id` says which device.
  base::Status open(CmId id);
  Connection& control() { return *control_; }
  // The memory, once the shape is known.
  base::Status create_memory(const Shape& shape);
  // A data queue pair, not connected yet.
  base::Expected<Connection*> add(CmId id);

  base::Status send(const Message& message);
  // Waits; fails when the other side is gone, says something else, or says nothing for `patience_s`.
  base::Expected<Message> receive(Message::Type type, double patience_s);
  base::Expected<Message> receive(double patience_s);

  // Those that rdma_cm has connected, and those made by hand (null until they are there).
  PairSet* set(Set which) { return sets_[static_cast<size_t>(which)].get(); }
  void keep(std::unique_ptr<PairSet> made, Set which) { sets_[static_cast<size_t>(which)] = std::move(made); }
  ibv_pd* domain() const { return domain_.get(); }
  Slots& slots() { return set(Set::kConnected)->slots(); }  // of those that rdma_cm has connected
  uint32_t pairs() const { return static_cast<uint32_t>(data_.size()); }
  Connection& pair(uint32_t index) { return *data_[index]; }

 private:
  static constexpr uint32_t kMessages = 32;  // receives that are always posted
  void post_receive(uint32_t index);
  std::byte* buffer(uint32_t index) const { return messages_->data() + index * sizeof(Message); }

  Domain domain_;  // first: everything below is in it, and goes before it
  std::unique_ptr<Memory> messages_;
  std::unique_ptr<Connection> control_;
  std::array<std::unique_ptr<PairSet>, kSets> sets_;  // with the memory of what follows
  std::vector<std::unique_ptr<Connection>> data_;
  std::vector<uint32_t> arrived_;  // messages that came while a send was waited for, in order
};

}  // namespace egret::bench_verbs
