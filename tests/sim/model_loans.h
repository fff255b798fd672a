// Values that the simulation's store lends to clients of its own process, as store::Loans does. When a value is given back its
// bytes are overwritten, so that a client which still reads it gets a wrong answer, and the run fails.
//
//   lend() ─▶ a name, in the result ─▶ the client takes it, reads it now or later, gives it back ─▶ take_back()
//               └─ its lane is gone, and has not taken it: revoke()
//
// Single-threaded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "op/loan.h"
#include "rng.h"
#include "rpc/slot_poller.h"

namespace egret::sim {

class ModelLoans {
 public:
  ModelLoans();
  ~ModelLoans();
  ModelLoans(const ModelLoans&) = delete;
  ModelLoans& operator=(const ModelLoans&) = delete;

  // In one to three pieces.
  op::LoanName lend(std::string_view value, rpc::LaneId borrower, Rng& rng);
  void take_back();
  void revoke(rpc::LaneId borrower);
  size_t count() const { return lent_; }  // that have not come back

 private:
  struct Lent;
  void end(Lent& lent);

  op::ReturnedLoans returned_;
  std::vector<std::unique_ptr<Lent>> all_;
  size_t lent_ = 0;
};

// What a client does with the values that it is lent: reads some at once, and some later, while other ops go on.
class KeptLoans {
 public:
  // The whole value.
  static std::string read(const op::Loan& loan);
  void keep(op::LoanRef loan, std::string expected);
  // Reads one that is kept and gives it back. False: it is not what it was.
  bool read_one(Rng& rng);
  bool read_all(Rng& rng);
  size_t count() const { return kept_.size(); }

 private:
  struct Kept {
    op::LoanRef loan;
    std::string expected;
  };
  std::vector<Kept> kept_;
};

}  // namespace egret::sim
