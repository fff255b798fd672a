#include "model_loans.h"

#include <algorithm>
#include <utility>

namespace egret::sim {

struct ModelLoans::Lent final : op::Loan {
  using Loan::Loan;
  std::string bytes;
  rpc::LaneId borrower{};
  bool is_lent = false;
};

ModelLoans::ModelLoans() = default;
ModelLoans::~ModelLoans() = default;

op::LoanName ModelLoans::lend(std::string_view value, rpc::LaneId borrower, Rng& rng) {
  auto free = std::ranges::find_if(all_, [](const auto& each) { return !each->is_lent; });
  if (free == all_.end()) free = all_.insert(all_.end(), std::make_unique<Lent>(returned_));
  Lent& lent = **free;
  lent.bytes = value;
  lent.borrower = borrower;
  lent.is_lent = true;
  ++lent_;
  lent.next_pieces().clear();
  for (std::string_view left = lent.bytes; !left.empty();) {
    const bool is_last = lent.next_pieces().size() == 2;
    const size_t size = is_last ? left.size() : rng.between(1, static_cast<uint32_t>(left.size()));
    lent.next_pieces().push_back(left.substr(0, size));
    left.remove_prefix(size);
  }
  return lent.lend();
}

void ModelLoans::take_back() {
  for (op::Loan* next = returned_.take(); next != nullptr;) {
    Lent& lent = static_cast<Lent&>(*next);
    next = next->next_returned();
    end(lent);
  }
}

void ModelLoans::revoke(rpc::LaneId borrower) {
  for (const auto& lent : all_) {
    if (lent->is_lent && lent->borrower == borrower && lent->revoke()) end(*lent);
  }
}

void ModelLoans::end(Lent& lent) {
  lent.is_lent = false;
  std::ranges::fill(lent.bytes, '!');
  --lent_;
}

std::string KeptLoans::read(const op::Loan& loan) {
  std::string whole;
  for (const std::string_view piece : loan.pieces()) whole += piece;
  return whole;
}

void KeptLoans::keep(op::LoanRef loan, std::string expected) {
  kept_.push_back({std::move(loan), std::move(expected)});
}

bool KeptLoans::read_one(Rng& rng) {
  if (kept_.empty()) return true;
  std::swap(kept_[rng.below(static_cast<uint32_t>(kept_.size()))], kept_.back());
  const bool is_right = read(*kept_.back().loan.operator->()) == kept_.back().expected;
  kept_.pop_back();
  return is_right;
}

bool KeptLoans::read_all(Rng& rng) {
  bool all_right = true;
  while (!kept_.empty()) all_right = read_one(rng) && all_right;
  return all_right;
}

}  // namespace egret::sim
