#include "bench_rpc/items.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

using namespace egret;
using namespace egret::bench_rpc;

namespace {

constexpr uint32_t kCount = 50;
constexpr uint32_t kValueSize = 32;

// A store that answers right, unless told otherwise.
class Answers {
 public:
  explicit Answers(Items& items) {
    op::Op op;
    for (uint32_t number = 0; number < kCount; ++number) {
      items.peek_fill(number, op);
      CHECK(execute(op).code == op::ResultCode::kStored);
    }
  }
  op::Result execute(const op::Op& op) {
    op::Result result;
    if (op.code == op::OpCode::kSet) {
      if (!forgets_sets || !values_.contains(std::string(op.key))) values_[std::string(op.key)] = op.value;
      result.code = op::ResultCode::kStored;
      return result;
    }
    const auto at = values_.find(std::string(op.key));
    result.code = at == values_.end() ? op::ResultCode::kMiss : op::ResultCode::kHit;
    if (at != values_.end()) result.value = at->second;
    result.total_length = static_cast<uint32_t>(result.value.size());
    return result;
  }
  size_t size() const { return values_.size(); }
  bool forgets_sets = false;

 private:
  std::map<std::string, std::string> values_;
};

// How many of so many drawn ops are judged wrong when the results have passed through `change`.
template <typename Change>
int wrong_of(int ops, Items& items, Answers& answers, Change change) {
  int wrong = 0;
  for (int i = 0; i < ops; ++i) {
    op::Op op;
    items.peek(op);
    op::Result result = answers.execute(op);
    change(op, result);
    wrong += items.is_right(items.take(), result) ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("right answers are right, and every item is filled under a key of its own") {
  Items items(kCount, kValueSize, 20);
  Answers answers(items);
  CHECK(answers.size() == kCount);
  int sets = 0;
  CHECK(wrong_of(1000, items, answers,
                 [&](const op::Op& op, op::Result&) { sets += op.code == op::OpCode::kSet ? 1 : 0; }) == 0);
  CHECK(sets == 50);
}

TEST_CASE("a set that is answered and not done is seen") {
  Items items(kCount, kValueSize, 20);
  Answers answers(items);
  answers.forgets_sets = true;
  CHECK(wrong_of(1000, items, answers, [](const op::Op&, op::Result&) {}) > 100);
}

TEST_CASE("a miss, a refusal, another key's value and a changed byte are wrong") {
  Items items(kCount, kValueSize, 0);
  Answers answers(items);
  const auto all_wrong = [&](auto change) { return wrong_of(100, items, answers, change) == 100; };
  CHECK(all_wrong([](const op::Op&, op::Result& result) { result.code = op::ResultCode::kMiss; }));
  CHECK(all_wrong([](const op::Op&, op::Result& result) { result.code = op::ResultCode::kOutOfMemory; }));
  std::string changed;
  for (size_t byte = 0; byte < kValueSize; ++byte) {
    CHECK(all_wrong([&](const op::Op&, op::Result& result) {
      changed = result.value;
      changed[byte] ^= 1;
      result.value = changed;
    }));
  }
  CHECK(all_wrong([&](const op::Op& op, op::Result& result) {
    op::Op other = op;
    const std::string key(op.key == bench_store::view(bench_store::key_text(1))
                              ? bench_store::view(bench_store::key_text(2))
                              : bench_store::view(bench_store::key_text(1)));
    other.key = key;
    result = answers.execute(other);
  }));
}

TEST_CASE("a value that was cut is right as far as it goes") {
  Items items(kCount, kValueSize, 0);
  Answers answers(items);
  for (size_t length = 0; length < kValueSize; ++length) {
    CHECK(wrong_of(10, items, answers,
                   [&](const op::Op&, op::Result& result) { result.value = result.value.substr(0, length); }) == 0);
  }
  std::string changed;
  CHECK(wrong_of(10, items, answers, [&](const op::Op&, op::Result& result) {
          changed = result.value.substr(0, 13);
          changed[12] ^= 1;
          result.value = changed;
        }) == 10);
  CHECK(wrong_of(10, items, answers, [&](const op::Op&, op::Result& result) {
          changed = std::string(result.value) + "more";
          result.value = changed;
          result.total_length += 4;
        }) == 10);
}
