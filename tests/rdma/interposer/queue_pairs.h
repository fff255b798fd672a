// What is known of each queue pair: which of its posted work requests are READs or atomics that have not completed. Completions of
// a queue pair's sends come in order, and one stands for all unsignalled ones before it; so a queue of what was posted
// is enough. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <infiniband/verbs.h>

namespace egret::interposer {

uint64_t bytes_of(const ibv_send_wr& work);

// In a mark that `hide` gives: the work request that ends a hidden verb.
inline constexpr uint64_t kLastPiece = 1;

class QueuePair {
 public:
  QueuePair(ibv_qp* qp, bool signals_all) : qp_(qp), signals_all_(signals_all) {}
  ~QueuePair() { end_later(); }

  // Held by whoever posts, from before the device is told until `posted`: a completion cannot come in between.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // With the lock held: the list from `first` up to and without `end` has been posted. Counts it.
  // `mark`: of the one verb that has been posted as something else (hide).
  void posted(const ibv_send_wr* first, const ibv_send_wr* end, uint64_t mark = 0);
  // Takes the lock: a send, or an unknown work request that failed, has completed.
  void completed();
  void failed();

  // A verb that the device is given as something else (pieces.h). Takes the lock. The mark is the wr_id of all of it, the
  // last of it also has kLastPiece.
  uint64_t hide(const ibv_send_wr& verb);
  // Makes a completion of hidden work requests what the program expects. False: it is none of the program's. Takes the lock.
  bool show(ibv_wc& completion);
  bool is_signalled(const ibv_send_wr& work) const;

  // A thread that posts what is left of a verb (tear_plan.h); at most one. `end_later` waits for it: before anything else is
  // posted, and before the queue pair goes. To be called without the lock held.
  void begin_later(std::thread thread) { later_ = std::move(thread); }
  void end_later() {
    if (later_.joinable()) later_.join();
  }

  ibv_qp* handle() const { return qp_; }

 private:
  struct Pending {
    bool takes_read_depth;  // a READ or an atomic
    bool is_signalled;
    uint64_t mark;  // 0: was not hidden
  };
  struct Hidden {
    uint64_t wr_id;
    uint32_t bytes;
    ibv_wc_opcode opcode;
    bool is_told;  // it has failed, and the program has seen that
  };
  void count_one(const ibv_send_wr& work, uint64_t mark);

  ibv_qp* const qp_;
  const bool signals_all_;
  std::thread later_;  // the posting thread's
  std::mutex mutex_;
  std::deque<Pending> pending_;
  uint64_t reads_ = 0;  // among them
  bool broken_ = false;
  uint64_t hidden_so_far_ = 0;
  std::map<uint64_t, Hidden> hidden_;  // by mark
};

void add_queue_pair(ibv_qp* qp, bool signals_all);
void remove_queue_pair(const ibv_qp* qp);
// One that was made in a way this library does not see is added by its first use.
std::shared_ptr<QueuePair> queue_pair(ibv_qp* qp);
// Null if it has been destroyed.
std::shared_ptr<QueuePair> queue_pair_by_number(const ibv_context* context, uint32_t number);

}  // namespace egret::interposer
