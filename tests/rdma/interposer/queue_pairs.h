// What is known of each queue pair: which of its posted work requests are READs or atomics that have not completed. Completions of
// a queue pair's sends come in order, and one stands for all unsignalled ones before it; so a queue of what was posted
// is enough. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include <infiniband/verbs.h>

namespace egret::interposer {

class QueuePair {
 public:
  QueuePair(ibv_qp* qp, bool signals_all) : qp_(qp), signals_all_(signals_all) {}

  // Held by whoever posts, from before the device is told until `posted`: a completion cannot come in between.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // With the lock held: the list from `first` up to and without `end` has been posted. Counts it.
  void posted(const ibv_send_wr* first, const ibv_send_wr* end);
  // Takes the lock: a send, or an unknown work request that failed, has completed.
  void completed();
  void failed();

  ibv_qp* handle() const { return qp_; }

 private:
  struct Pending {
    bool takes_read_depth;  // a READ or an atomic
    bool is_signalled;
  };
  void count_one(const ibv_send_wr& work);

  ibv_qp* const qp_;
  const bool signals_all_;
  std::mutex mutex_;
  std::deque<Pending> pending_;
  uint64_t reads_ = 0;  // among them
  bool broken_ = false;
};

void add_queue_pair(ibv_qp* qp, bool signals_all);
void remove_queue_pair(const ibv_qp* qp);
// One that was made in a way this library does not see is added by its first use.
std::shared_ptr<QueuePair> queue_pair(ibv_qp* qp);
// Null if it has been destroyed.
std::shared_ptr<QueuePair> queue_pair_by_number(const ibv_context* context, uint32_t number);

}  // namespace egret::interposer
