// A value that is lent: by name, taken once, given back from any thread.
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "op/loan.h"

using namespace egret::op;

namespace {

LoanName lend(Loan& loan, std::string_view value) {
  loan.next_pieces() = {value.substr(0, 1), value.substr(1)};
  return loan.lend();
}

std::string text(const Loan& loan) {
  std::string all;
  for (const std::string_view piece : loan.pieces()) all += piece;
  return all;
}

}  // namespace

TEST_CASE("a value is taken once, and comes back when nobody keeps it") {
  ReturnedLoans returned;
  Loan loan(returned);
  const LoanName name = lend(loan, "value");
  REQUIRE(Loan::take(name));
  CHECK_FALSE(Loan::take(name));
  CHECK(text(loan) == "value");
  CHECK(loan.length() == 5);
  CHECK(returned.take() == nullptr);
  loan.give_back();
  CHECK(returned.take() == &loan);
  CHECK(returned.take() == nullptr);
}

TEST_CASE("who keeps it gives it back at the end, wherever it was moved to") {
  ReturnedLoans returned;
  Loan loan(returned);
  REQUIRE(Loan::take(lend(loan, "value")));
  {
    LoanRef last;
    {
      LoanRef first(loan);
      last = std::move(first);
    }
    CHECK(last->length() == 5);
    CHECK(returned.take() == nullptr);
  }
  CHECK(returned.take() == &loan);
}

TEST_CASE("a name is of one value: what is revoked or lent anew is not found by it") {
  ReturnedLoans returned;
  Loan loan(returned);
  const LoanName revoked = lend(loan, "first");
  REQUIRE(loan.revoke());
  CHECK_FALSE(Loan::take(revoked));
  const LoanName next = lend(loan, "second");
  CHECK_FALSE(Loan::take(revoked));
  REQUIRE(Loan::take(next));
  CHECK_FALSE(loan.revoke());
  CHECK(text(loan) == "second");
  loan.give_back();
  CHECK_FALSE(Loan::take(next));
  CHECK(returned.take() == &loan);
}

TEST_CASE("loans of several threads all come back") {
  constexpr size_t kThreads = 3, kEach = 2000;
  ReturnedLoans returned;
  std::vector<std::unique_ptr<Loan>> loans;
  std::vector<LoanName> names;
  for (size_t i = 0; i < kThreads * kEach; ++i) {
    loans.push_back(std::make_unique<Loan>(returned));
    names.push_back(lend(*loans.back(), "value"));
  }
  std::vector<std::jthread> borrowers;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    borrowers.emplace_back([&names, thread] {
      for (size_t i = thread * kEach; i < (thread + 1) * kEach; ++i) {
        if (Loan::take(names[i])) LoanRef{*names[i].loan};
      }
    });
  }
  size_t back = 0;
  while (back < loans.size()) {
    for (Loan* next = returned.take(); next != nullptr; ++back) next = next->next_returned();
    std::this_thread::yield();
  }
  CHECK(returned.take() == nullptr);
}
