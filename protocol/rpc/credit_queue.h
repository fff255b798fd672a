// The senders that wait to append to a session again: for credit, or for something else that is used in turns (a pin,
// room for an upload). First come, first served.
//
//   append() refused ─▶ wait() ─▶ … announce() ─▶ the session's next pass: hand_out() ─ on_credit() ─▶ append() again
//
// Owned by the session. Thread: the worker's.
#pragma once

#include <deque>
#include <utility>

#include "base/check.h"
#include "rpc/active/work_listener.h"
#include "rpc/lanes.h"

namespace egret::rpc {

// A sender whose append() was refused for want of credit, and that waits to be called when there may be some.
class CreditWaiter {
 public:
  virtual void on_credit() = 0;

 protected:
  ~CreditWaiter() = default;
};

class CreditQueue {
 public:
  // `listener` hears of announcements; it may be null.
  explicit CreditQueue(const Lanes& lanes, WorkListener* listener = nullptr) : lanes_(lanes), listener_(listener) {}

  // Calls back once: in the next pass in which there is credit again, or when the session is lost.
  void wait(CreditWaiter* waiter) { waiters_.push_back(waiter); }
  void stop_waiting(const CreditWaiter* waiter) {
    EGRET_ASSERT_OWNER(owner_);
    std::erase(waiters_, waiter);
  }
  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }

  // Credit, or something else that senders wait for, has become free.
  void announce() {
    is_announced_ = true;
    if (listener_ != nullptr) listener_->on_work();
  }
  // The next hand_out() calls every waiter, also where there is no credit: its lane is silent, and it must not wait longer.
  void announce_to_all() {
    is_for_all_ = true;
    announce();
  }
  bool is_announced() const { return is_announced_; }
  // Whether hand_out() will call a waiter.
  bool is_due() const { return is_announced_ && !empty(); }
  // Calls the waiters, if something was announced. Returns whether there were any.
  bool hand_out();
  void release_owner() { owner_.release(); }  // as the session's

 private:
  base::OwnerThread owner_;
  const Lanes& lanes_;
  WorkListener* const listener_;
  std::deque<CreditWaiter*> waiters_;
  bool is_announced_ = false;
  bool is_for_all_ = false;
};

// A waiter that is refused again goes to the end of the queue. Stops when all credit is used up, but calls all waiters
// when the session is lost, and after announce_to_all().
inline bool CreditQueue::hand_out() {
  EGRET_ASSERT_OWNER(owner_);
  if (!is_announced_) return false;
  is_announced_ = false;
  const bool is_for_all = std::exchange(is_for_all_, false) || lanes_.count() == 0;
  size_t waiting = waiters_.size();
  const bool any = waiting > 0;
  while (waiting-- > 0 && !waiters_.empty() && (is_for_all || lanes_.has_credit())) {
    CreditWaiter* waiter = waiters_.front();
    waiters_.pop_front();
    waiter->on_credit();
  }
  return any;
}

}  // namespace egret::rpc
