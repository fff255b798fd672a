// One store that is measured: filled with numbered keys, then called in passes as the backend calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench_store/keys.h"
#include "bench_store/machine.h"
#include "bench_store/peer/raw_lines.h"
#include "bench_store/subject.h"

namespace egret::bench_store {

enum class Mix : uint8_t {
  kHash,  // the store does nothing
  kGet,
  kGet95,    // gets with 5 % sets of existing keys
  kSet,      // sets of existing keys
  kInsert,   // sets of new keys
  kReplace,  // a batch of deletes, then sets of the same keys
  kIncrement,
};

struct Case {
  const char* name;
  Mix mix;
  uint32_t batch;
  bool prefetches = true;
  bool zipf = false;
};

class StoreBench {
 public:
  // Inserts items 0..items-1. Ends the process if the memory does not hold them all.
  StoreBench(uint64_t items, uint64_t memory, uint32_t value_size);

  // CPU time of an op, in ns: everything that a partition does with the decoded ops of a batch: hash keys, prepare,
  // locate, execute, copy values. Mix::kInsert uses keys that were never in the store.
  double measure(const Case& each, double seconds);
  // The minimum work of a batch of gets: hash keys, read raw2's two lines, compare a key, copy a value.
  double measure_least(const RawLines& raw, double seconds);
  // Inserts until the store has begun to evict.
  void fill_up();
  // raw2 over ranges as large as this store's index and items.
  std::unique_ptr<RawLines> make_control() const;
  // What is in the store, what an item takes up, and in which pages.
  std::vector<std::string> notes() const;
  // Answers that were not the expected ones.
  uint64_t wrong() const { return wrong_; }

 private:
  void fill(uint64_t items);
  void draw_fresh(uint64_t count);
  void make_ops(const Case& each, std::span<const KeyText> keys);
  void add_ops(op::OpCode code, std::span<const KeyText> keys);
  void make_sets();
  void run_ops(const Case& each);
  void run_batch(const Case& each, std::span<op::Op> ops);
  void least_batch(const RawLines& raw, std::span<op::Op> ops);
  void take(op::OpCode code, const op::Result& result);

  const std::vector<KeyText> uniform_;
  const std::vector<KeyText> zipf_;
  std::string value_;
  std::vector<char> response_;
  const uint64_t inserted_most_;  // after so many inserts the store must be full
  base::SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  MemoryMap pages_;
  std::vector<KeyText> fresh_;  // for inserts
  uint64_t next_fresh_ = 0;     // number of the next key that was never in the store
  uint64_t at_ = 0;             // the next of uniform_ or zipf_
  std::vector<op::Op> ops_;     // what is measured next
  uint64_t now_ns_ = 0;
  uint32_t ops_since_clock_ = store::kMaxBatch;
  size_t until_set_ = 0;
  double fill_ns_ = 0;
  uint64_t sum_ = 0;  // keeps what is read from being optimised away
  uint64_t wrong_ = 0;
};

}  // namespace egret::bench_store
