#include "store/loans.h"

#include <utility>

namespace egret::store {

using op::Loan;

struct Loans::Lent final : Loan {
  using Loan::Loan;
  Store::Pin pin;  // empty: it is in free_
  uint32_t borrower = 0;
};

Loans::Loans() = default;
Loans::~Loans() = default;

op::LoanName Loans::lend(Store::Pin pin, uint32_t borrower) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Lent>(returned_));
    free_.reserve(all_.size());
    free_.push_back(all_.back().get());
  }
  Lent& lent = *free_.back();
  free_.pop_back();
  auto& pieces = lent.next_pieces();
  pieces.clear();
  for (uint32_t offset = 0; offset < pin.length();) {
    const op::Result part = pin.chunk(offset, Store::kMaxChunk);
    pieces.push_back(part.value);
    pieces.insert(pieces.end(), part.further.begin(), part.further.end());
    offset += static_cast<uint32_t>(part.value.size());
    for (const std::string_view further : part.further) offset += static_cast<uint32_t>(further.size());
  }
  bytes_ += pin.length();
  lent.pin = std::move(pin);
  lent.borrower = borrower;
  return lent.lend();
}

void Loans::take_back() {
  for (Loan* next = returned_.take(); next != nullptr;) {
    Lent& lent = static_cast<Lent&>(*next);
    next = next->next_returned();
    end(lent);
  }
}

void Loans::revoke(uint32_t borrower) {
  for (const auto& lent : all_) {
    if (lent->pin && lent->borrower == borrower && lent->revoke()) end(*lent);
  }
}

void Loans::end(Lent& lent) {
  bytes_ -= lent.pin.length();
  lent.pin.release();
  free_.push_back(&lent);
}

}  // namespace egret::store
