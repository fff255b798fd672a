#include "op/loan.h"

#include "base/check.h"

namespace egret::op {

LoanName Loan::lend() {
  EGRET_DCHECK((state_.load(std::memory_order_relaxed) & 3) == kAbsent);
  length_ = 0;
  for (const std::string_view piece : pieces_) length_ += piece.size();
  state_.store(state(++serial_, kLent), std::memory_order_release);
  return {this, serial_};
}

bool Loan::revoke() {
  uint64_t lent = state(serial_, kLent);
  return state_.compare_exchange_strong(lent, state(serial_, kAbsent), std::memory_order_relaxed);
}

bool Loan::take(const LoanName& name) {
  uint64_t lent = state(name.serial, kLent);
  Loan& loan = *name.loan;
  return loan.state_.compare_exchange_strong(lent, state(name.serial, kTaken), std::memory_order_acquire);
}

// The lender must not find it before nothing of it is used any more.
void Loan::give_back() {
  EGRET_DCHECK((state_.load(std::memory_order_relaxed) & 3) == kTaken);
  state_.store(state(0, kAbsent), std::memory_order_relaxed);
  std::atomic<Loan*>& head = returned_.head_;
  next_ = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace egret::op
