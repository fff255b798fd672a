// A value that its store lends to a client of the same process: the bytes stay where they are, unchanged, until the
// borrower gives them back.
//
//   lender: lend() ─ the name goes with the result ─▶ take() ─ pieces() are sent ─▶ give_back() ─▶ ReturnedLoans::take()
//           revoke(): nobody has taken it, and nobody can any more
//
// A Loan object is used again for other values, and so a name has a serial: who looks for a value that is no longer lent
// finds that out. Threads: the lender's and one borrower's; who calls what is said below. Objects outlive their names.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace egret::op {

class Loan;

// Which value a result lends. Meaningful within one process.
struct LoanName {
  Loan* loan = nullptr;
  uint64_t serial = 0;
};

// Loans that were given back, until their lender looks.
class ReturnedLoans {
 public:
  // The lender's thread: all since the last call, in no order; null: none. Go on with Loan::next_returned().
  Loan* take() {
    return head_.load(std::memory_order_relaxed) == nullptr ? nullptr
                                                            : head_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  friend class Loan;
  std::atomic<Loan*> head_{nullptr};
};

class Loan {
 public:
  explicit Loan(ReturnedLoans& returned) : returned_(returned) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // --- the lender's thread
  // The pieces of the next value, to be filled in before lend().
  std::vector<std::string_view>& next_pieces() { return pieces_; }
  LoanName lend();
  // False: it was taken, and comes back.
  bool revoke();
  // Behind it in what ReturnedLoans::take() gave.
  Loan* next_returned() const { return next_; }

  // --- the borrower's thread
  // False: it is not lent any more.
  static bool take(const LoanName& name);
  // After take(), until give_back().
  std::span<const std::string_view> pieces() const { return pieces_; }
  uint64_t length() const { return length_; }
  void give_back();

 private:
  enum Phase : uint64_t { kAbsent, kLent, kTaken };
  static uint64_t state(uint64_t serial, Phase phase) { return serial << 2 | phase; }

  ReturnedLoans& returned_;
  std::atomic<uint64_t> state_{0};
  uint64_t serial_ = 0;  // the lender's
  uint64_t length_ = 0;  // bytes
  std::vector<std::string_view> pieces_;
  Loan* next_ = nullptr;
};

// Gives back a loan that was taken. Move-only. Thread: the borrower's.
class LoanRef {
 public:
  LoanRef() = default;
  explicit LoanRef(Loan& taken) : loan_(&taken) {}
  LoanRef(LoanRef&& other) noexcept : loan_(std::exchange(other.loan_, nullptr)) {}
  LoanRef& operator=(LoanRef&& other) noexcept {
    if (this != &other) {
      reset();
      loan_ = std::exchange(other.loan_, nullptr);
    }
    return *this;
  }
  ~LoanRef() { reset(); }

  void reset() {
    if (Loan* const loan = std::exchange(loan_, nullptr); loan != nullptr) loan->give_back();
  }
  explicit operator bool() const { return loan_ != nullptr; }
  const Loan* operator->() const { return loan_; }

 private:
  Loan* loan_ = nullptr;
};

}  // namespace egret::op
