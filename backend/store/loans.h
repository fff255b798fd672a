// The values that a store has lent to clients of its own process (op/loan.h): each is pinned until its borrower has given
// it back, in which thread that may be, and the partition has looked: at its next round.
//
//   lend(pin) ─▶ a name, in the result ─▶ the borrower takes it, sends the pieces, gives it back ─▶ take_back(): the pin ends
//                  └─ its borrower is gone, and has not taken it: revoke()
//
// Thread: the store's. Memory: a Loan for each value that was ever lent at one time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "op/loan.h"
#include "store/store.h"

namespace egret::store {

class Loans {
 public:
  Loans();
  ~Loans();
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  // The value of a pin whose bytes stay (Store::Pin::keeps_bytes()). `borrower`: whoever it is, by a number.
  op::LoanName lend(Store::Pin pin, uint32_t borrower);
  // Ends the pins of those that were given back.
  void take_back();
  // ... and of those that this borrower has not taken, which it cannot do any more.
  void revoke(uint32_t borrower);
  // Of values that are lent, each as often as it is.
  uint64_t bytes() const { return bytes_; }
  size_t count() const { return all_.size() - free_.size(); }

 private:
  struct Lent;
  void end(Lent& lent);

  op::ReturnedLoans returned_;
  std::vector<std::unique_ptr<Lent>> all_;
  std::vector<Lent*> free_;
  uint64_t bytes_ = 0;
};

}  // namespace egret::store
