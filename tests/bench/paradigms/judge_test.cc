// What is wrong with an answer is seen, each kind of it; and what is not wrong is let through.
#include "bench_paradigms/harness/judge.h"

#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "bench/keyspace.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

constexpr uint32_t kKeys = 10;
constexpr uint32_t kBytes = 200;

std::string value_of(uint32_t key, uint64_t version, uint32_t bytes = kBytes) {
  std::string value(bytes, '\0');
  egret::bench::write_value(value.data(), value.size(), key, version);
  return value;
}

std::string number_of(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A judge of one client, with what it asks for in one line.
struct Court {
  explicit Court(Writers writers = Writers::kOne, bool has_erases = true)
      : knowledge(kKeys, writers, has_erases), judge(knowledge, kBytes) {}

  Expectation begin(OpKind kind, uint32_t key, uint64_t version = 0) {
    Expectation expectation;
    REQUIRE(judge.begin(kind, key, version, expectation));
    return expectation;
  }
  // A get from its begin to its answer.
  Fault get(uint32_t key, Outcome outcome, const std::string& value = "") {
    return judge.judge(begin(OpKind::kGet, key), outcome, value);
  }
  Fault next(const std::string& number) { return judge.judge(begin(OpKind::kNext, 0), Outcome::kHit, number); }
  void put(uint32_t key, uint64_t version, Outcome outcome = Outcome::kDone) {
    CHECK(judge.judge(begin(OpKind::kPut, key, version), outcome, "") == Fault::kNone);
  }
  void erase(uint32_t key, uint64_t version) {
    CHECK(judge.judge(begin(OpKind::kErase, key, version), Outcome::kDone, "") == Fault::kNone);
  }

  Knowledge knowledge;
  Judge judge;
};

}  // namespace

TEST_CASE("the loaded value is right, and so is each that was put later") {
  Court court;
  CHECK(court.get(3, Outcome::kHit, value_of(3, kLoadedVersion)) == Fault::kNone);
  court.put(3, 5);
  CHECK(court.get(3, Outcome::kHit, value_of(3, 5)) == Fault::kNone);
  CHECK(court.get(3, Outcome::kHit, value_of(3, 6)) == Fault::kNone);  // of a put that is not yet acknowledged
}

TEST_CASE("a value of another size, of another key, and a torn one are told apart") {
  Court court;
  CHECK(court.get(3, Outcome::kHit, value_of(3, 5, kBytes - 1)) == Fault::kSize);
  CHECK(court.get(3, Outcome::kHit, value_of(4, 5)) == Fault::kOtherKey);
  CHECK(court.get(3, Outcome::kHit, value_of(3, 5).substr(0, 100) + value_of(3, 6).substr(100)) == Fault::kTorn);
}

TEST_CASE("a value is old if a newer one was acknowledged before the get was begun, and not if it was during the get") {
  Court court;
  const Expectation during = court.begin(OpKind::kGet, 3);
  court.put(3, 5);
  CHECK(court.judge.judge(during, Outcome::kHit, value_of(3, kLoadedVersion)) == Fault::kNone);
  CHECK(court.get(3, Outcome::kHit, value_of(3, kLoadedVersion)) == Fault::kOld);
}

TEST_CASE("a put that was lost or refused proves nothing newer") {
  for (const Outcome outcome : {Outcome::kLost, Outcome::kFull, Outcome::kFailed}) {
    Court court;
    court.put(3, 5, outcome);
    CHECK(court.get(3, Outcome::kHit, value_of(3, kLoadedVersion)) == Fault::kNone);
  }
}

TEST_CASE("a key that was there all the time must not be missed; one that is erased meanwhile may be") {
  Court court;
  CHECK(court.get(3, Outcome::kMiss) == Fault::kMissed);
  const Expectation before = court.begin(OpKind::kGet, 3);
  const Expectation erase = court.begin(OpKind::kErase, 3, 5);
  const Expectation during = court.begin(OpKind::kGet, 3);
  CHECK(court.judge.judge(erase, Outcome::kDone, "") == Fault::kNone);
  court.put(3, 6);
  CHECK(court.judge.judge(before, Outcome::kMiss, "") == Fault::kNone);
  CHECK(court.judge.judge(during, Outcome::kMiss, "") == Fault::kNone);
  CHECK(court.get(3, Outcome::kMiss) == Fault::kMissed);
}

TEST_CASE("an erased value that comes back is an old one; the erase of a key that is there must not miss") {
  Court court;
  court.put(3, 5);
  court.erase(3, 6);
  CHECK(court.get(3, Outcome::kMiss) == Fault::kNone);
  CHECK(court.get(3, Outcome::kHit, value_of(3, 5)) == Fault::kOld);
  CHECK(court.judge.judge(court.begin(OpKind::kErase, 4, 7), Outcome::kMiss, "") == Fault::kMissed);
}

TEST_CASE("of two writes of a key at the same time the second is left out") {
  Court court;
  const Expectation first = court.begin(OpKind::kPut, 3, 5);
  Expectation second;
  CHECK(!court.judge.begin(OpKind::kErase, 3, 6, second));
  court.judge.judge(first, Outcome::kDone, "");
  CHECK(court.judge.begin(OpKind::kErase, 3, 6, second));
}

TEST_CASE("with any writer, old values are not told; misses are, as long as nothing is erased") {
  Court court(Writers::kAny, false);
  court.put(3, 5);
  CHECK(court.get(3, Outcome::kHit, value_of(3, kLoadedVersion)) == Fault::kNone);
  CHECK(court.get(3, Outcome::kHit, value_of(4, 5)) == Fault::kOtherKey);
  CHECK(court.get(3, Outcome::kMiss) == Fault::kMissed);
  Court with_erases(Writers::kAny, true);
  CHECK(with_erases.get(3, Outcome::kMiss) == Fault::kNone);
}

TEST_CASE("a number is given once, however late it comes") {
  Court court;
  CHECK(court.next(number_of(0)) == Fault::kNone);
  CHECK(court.next(number_of(2)) == Fault::kNone);
  CHECK(court.next(number_of(1)) == Fault::kNone);
  CHECK(court.next(number_of(2)) == Fault::kDuplicate);
  CHECK(court.next(number_of(5'000'000)) == Fault::kNone);
  CHECK(court.next("short") == Fault::kSize);
}

TEST_CASE("an outcome that the op cannot have is wrong; lost and failed ops are no wrong answers") {
  Court court;
  CHECK(court.get(3, Outcome::kDone) == Fault::kOddKind);
  CHECK(court.get(3, Outcome::kFull) == Fault::kOddKind);
  CHECK(court.judge.judge(court.begin(OpKind::kPut, 3, 5), Outcome::kHit, "") == Fault::kOddKind);
  CHECK(court.judge.judge(court.begin(OpKind::kPut, 3, 6), Outcome::kMiss, "") == Fault::kOddKind);
  CHECK(court.get(3, Outcome::kLost) == Fault::kNone);
  CHECK(court.get(3, Outcome::kFailed) == Fault::kNone);
}
