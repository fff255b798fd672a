// The memory that client connections hold, counted in one place, and its limits.
//
//   charge() ◀─ a pending reply with its answer, or with what that will probably take while it is awaited (ReplyQueue);
//               blocks and copies of output (OutputQueue)
//   charge_input() ◀─ the block of input that is not executed yet: half a command, or commands that wait (Connection)
//   take_large() ◀─ the one large value that a connection may have: charged to large_value_memory from when it is
//                   assembled until it is sent
//
// Each worker has an equal share of `client_memory` and of `large_value_memory`, so no counter is shared by threads; a
// ConnectionMemory counts one connection's part of its worker's share. At a limit a connection's commands are not read
// until its client has read answers; a value that arrives meanwhile is dropped and fetched again in its turn
// (ReplyQueue). A connection that holds only input is read nevertheless, since its client must send the rest of its
// command first; is_input_high() says when such clients are disconnected. Not counted: the connection object and the
// kernel's socket buffers. Thread: the worker's; `used` is a gauge that any thread reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/check.h"
#include "base/counter.h"

namespace egret::proxy {

class ReplyQueue;

// Counts bytes of large values, over all connections of a worker. A connection that finds no room waits in a queue.
class LargeValueBudget {
 public:
  explicit LargeValueBudget(uint64_t limit) : limit_(limit) {}
  // Does not take back bytes that are taken already. Connections that wait try again.
  void set_limit(uint64_t limit);
  // If nothing is taken, a value of any size succeeds.
  bool take(uint64_t bytes);
  void give(uint64_t bytes);
  // A value for which `from` bytes are taken turns out to need `to`. False: there is no room, and `from` stays taken.
  bool resize(uint64_t from, uint64_t to);
  void wait(ReplyQueue* queue);
  void stop_waiting(const ReplyQueue* queue);
  bool is_anybody_waiting() const { return !waiting_.empty(); }

 private:
  void wake();

  uint64_t limit_;
  uint64_t used_ = 0;
  std::deque<ReplyQueue*> waiting_;
  bool is_waking_ = false;
  bool wake_again_ = false;
};

// A worker's counters, for metrics.
struct MemoryCounters {
  base::Gauge used;                // bytes of all its connections
  base::Counter connection_waits;  // how often a connection was not read because of connection_memory
  base::Counter client_waits;      // likewise because of client_memory
  base::Counter stalled_readers;   // clients disconnected because they held a large value that others needed room for
  base::Counter stalled_senders;   // clients disconnected because they held half a command while input took much memory
};

// The memory of all connections of a worker.
struct WorkerMemory {
  explicit WorkerMemory(MemoryCounters& shown) : counters(shown) {}

  uint64_t connection_limit = UINT64_MAX;
  uint64_t limit = UINT64_MAX;
  uint64_t used = 0;
  uint64_t input = 0;  // the part of `used` that is input
  // Input takes half of the limit: clients that have not sent a command completely for long are disconnected.
  bool is_input_high() const { return input >= limit / 2; }

  LargeValueBudget large{UINT64_MAX};      // for gets
  LargeValueBudget collected{UINT64_MAX};  // for sets whose values are collected before they are sent
  MemoryCounters& counters;

  // Shows `used` to other threads: once a pass, so that a charge is no more than two additions.
  void show() { counters.used.set(used); }
};

class ConnectionMemory {
 public:
  explicit ConnectionMemory(WorkerMemory& worker) : worker_(worker) {}
  ConnectionMemory(const ConnectionMemory&) = delete;
  ConnectionMemory& operator=(const ConnectionMemory&) = delete;
  ~ConnectionMemory() { EGRET_DCHECK(used_ == 0); }

  void charge(size_t bytes) {
    used_ += bytes;
    worker_.used += bytes;
  }
  void refund(size_t bytes) {
    EGRET_DCHECK(bytes <= used_);
    used_ -= bytes;
    worker_.used -= bytes;
  }
  size_t used() const { return used_; }
  void charge_input(size_t bytes) {
    charge(bytes);
    input_ += bytes;
    worker_.input += bytes;
  }
  void refund_input(size_t bytes) {
    refund(bytes);
    input_ -= bytes;
    worker_.input -= bytes;
  }

  // Whether another command may be read. A connection that holds nothing but input always may, so that it makes progress
  // whatever other clients do. Counts a wait if the result is false.
  bool may_take_command() {
    if (used_ == input_ || (used_ < worker_.connection_limit && worker_.used < worker_.limit)) return true;
    (used_ >= worker_.connection_limit ? worker_.counters.connection_waits : worker_.counters.client_waits).add();
    return false;
  }
  // Whether `bytes` more may be kept until the client reads them.
  bool may_keep(size_t bytes) const {
    return used_ + bytes <= worker_.connection_limit && worker_.used + bytes <= worker_.limit;
  }

  LargeValueBudget& large() { return worker_.large; }

 private:
  WorkerMemory& worker_;
  size_t used_ = 0;
  size_t input_ = 0;  // of that
};

}  // namespace egret::proxy
