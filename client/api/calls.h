// Ops as egret.h gives them, as the engine takes them; and batches of them that are waited for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "client/api/handles.h"
#include "client/api/results.h"
#include "op/op.h"

namespace egret::client {

// An error of the last call, in words.
int because(egret_client& client, int code, const char* why);
int because_of_trouble(egret_client& client, int code);

bool is_valid_key(const char* key, size_t key_length);
// The caller's array of ops. A program that was compiled for a later version has longer ones: only the part known here is read.
class OpArray {
 public:
  explicit OpArray(const egret_op* first) : at_(reinterpret_cast<const char*>(first)), stride_(first->size) {}
  static bool is_valid(const egret_op* first);
  const egret_op& operator[](size_t index) const {
    return *static_cast<const egret_op*>(static_cast<const void*>(at_ + index * stride_));
  }

 private:
  const char* at_;
  uint32_t stride_;
};
// EGRET_OK, or what is wrong with it.
int to_op(const egret_op& from, op::Op& op, const char*& why);

// Whether the ops submitted so far are sent to backends of this host now, so that they execute these while the rest is encoded. A
// lane has few slots: with more than kMost ops all of them are under way in any case, and full messages serve best.
inline bool begins_early(size_t submitted, size_t count) {
  constexpr size_t kOps = 16, kMessages = 2, kMost = 128;
  return submitted % kOps == 0 && submitted <= kMessages * kOps && count - submitted >= kOps / 2 && count <= kMost;
}

// How long the ops of one call wait for room: each for op_timeout; but when one has waited in vain, all others together for as long
// once more. So a call of many ops ends soon where a backend stands still, and those of other backends are still sent.
class Patience {
 public:
  explicit Patience(Engine& engine) : engine_(engine) {}

  // False: there is no room for an op of this call.
  bool wait_for_room() {
    if (until_ns_ == 0) until_ns_ = std::min(last_ns_, engine_.clock().now_ns() + engine_.op_timeout_ns());
    if (engine_.wait_for_room(until_ns_)) return true;
    if (last_ns_ == kNever) last_ns_ = engine_.clock().now_ns() + engine_.op_timeout_ns();
    return false;
  }
  void begin_next_op() { until_ns_ = 0; }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  Engine& engine_;
  uint64_t until_ns_ = 0;      // of this op; 0: it has not waited yet
  uint64_t last_ns_ = kNever;  // of all ops
};

// Submits `count` ops one after the other, waiting for room, and waits for all answers. `make(i, op, tag, stays)` gives op
// number i, EGRET_OK or why it cannot be sent.
template <typename Make>
void run_batch(egret_client& client, size_t count, Batch& batch, Make make) {
  Engine& engine = *client.engine;
  Patience patience(engine);
  for (size_t i = 0; i < count; ++i) {
    op::Op op;
    uint64_t tag = 0;
    constexpr bool stays = true;  // the caller waits
    if (const int wrong = make(i, op, tag); wrong != EGRET_OK) {
      batch.fail(i, wrong, tag);
      continue;
    }
    batch.expect();
    Taken taken = engine.submit(op, batch, batch.context(i), tag, stays);
    if (taken != Taken::kYes) [[unlikely]] {
      patience.begin_next_op();
      while (is_for_later(taken) && patience.wait_for_room()) {
        taken = engine.submit(op, batch, batch.context(i), tag, stays);
      }
    }
    if (taken == Taken::kYes) {
      if (begins_early(i + 1, count)) engine.begin_on_host();
      continue;
    }
    batch.expect_less();
    batch.fail(i, taken == Taken::kTooLarge ? EGRET_E_MEMORY : EGRET_E_UNAVAILABLE, tag);
  }
  engine.wait([&] { return batch.is_over(); }, UINT64_MAX);  // op_timeout ends it
}

}  // namespace egret::client
