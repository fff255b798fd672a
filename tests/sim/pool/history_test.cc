// The checker itself: what it lets pass and what it must notice, from histories that are written by hand.
#include "history.h"

#include <doctest/doctest.h>

namespace egret::sim {

namespace {

constexpr uint32_t kKey = 0;
constexpr uint32_t kNumber = 4;
constexpr uint32_t kNoPlace = 0;

// Requests that are asked and answered at once, or in two halves. Each is of a session of its own, so that only time
// says what came first.
struct Told : History {
  explicit Told(Registers registers) : History(registers, 5, 2) {}

  Request& ask(Kind kind, uint32_t proxy, uint32_t backend = 0, uint32_t key = kKey) {
    Request& request = make(kind, key);
    request.proxy = proxy;
    if (kind == Kind::kFlush) {
      begin_flush(request, {backend});
    } else {
      begin(request, backend, ++sessions, kNoPlace);
    }
    return request;
  }
  void end(Request& request, op::ResultCode code) {
    op::Result result;
    result.code = code;
    answer(request, result);
  }
  Request& set(uint32_t proxy, uint32_t backend = 0) {
    Request& request = ask(Kind::kSet, proxy, backend);
    end(request, op::ResultCode::kStored);
    return request;
  }
  void remove(uint32_t proxy, op::ResultCode code = op::ResultCode::kDeleted, uint32_t backend = 0) {
    end(ask(Kind::kDelete, proxy, backend), code);
  }
  void miss(uint32_t proxy, uint32_t backend = 0) { end(ask(Kind::kGet, proxy, backend), op::ResultCode::kMiss); }
  void hit(Request& request, const Request& of) {
    const std::string value = value_of(of);
    op::Result result;
    result.code = op::ResultCode::kHit;
    result.value = value;
    result.total_length = static_cast<uint32_t>(value.size());
    result.client_flags = flags_of(of);
    answer(request, result);
  }
  void read(uint32_t proxy, const Request& of, uint32_t backend = 0) { hit(ask(Kind::kGet, proxy, backend), of); }
  // Adds to a number that `created` began.
  void add(uint32_t proxy, const Request* created, uint64_t count, uint32_t backend = 0) {
    Request& request = ask(Kind::kArith, proxy, backend, kNumber);
    op::Result result;
    result.code = op::ResultCode::kNumber;
    result.number = initial_of(created == nullptr ? request : *created) + count;
    answer(request, result);
    last = &request;
  }
  bool is_stale() const { return failure().find("stale") != std::string::npos; }

  uint64_t sessions = 0;
  Request* last = nullptr;
};

}  // namespace

TEST_CASE("one register for each key: what one proxy wrote, another one reads") {
  Told history(Registers::kPerKey);
  const Request& one = history.set(0);
  const Request& two = history.set(1, 1);
  history.read(0, two);
  CHECK(history.failure() == "");
  history.read(1, one);
  CHECK(history.is_stale());
}

TEST_CASE("one register for each copy: the copy of another backend is not replaced") {
  Told history(Registers::kPerCopy);
  const Request& one = history.set(0, 0);
  history.set(0, 1);
  history.read(0, one, 0);
  CHECK(history.failure() == "");
  history.set(1, 0);
  history.read(0, one, 0);
  CHECK(history.is_stale());
}

TEST_CASE("through a proxy nothing is read that is older than what it was acknowledged") {
  Told history(Registers::kThroughProxy);
  const Request& one = history.set(0, 0);
  const Request& two = history.set(0, 1);
  history.read(0, two, 1);
  history.miss(0, 0);
  history.read(1, one, 0);
  CHECK(history.failure() == "");
  history.read(0, one, 0);
  CHECK(history.is_stale());
}

TEST_CASE("through a proxy nothing is read that is older than what was read through it") {
  Told history(Registers::kThroughProxy);
  const Request& one = history.set(0, 0);
  const Request& two = history.set(0, 1);
  history.read(1, two, 1);
  CHECK(history.failure() == "");
  history.read(1, one, 0);
  CHECK(history.is_stale());
}

TEST_CASE("what was under way at the same time is not older, and a request that failed has no known end") {
  Told history(Registers::kThroughProxy);
  history.allow_failures();
  Request& slow = history.ask(Kind::kSet, 0);
  Request& failed = history.ask(Kind::kSet, 0);
  history.end(failed, op::ResultCode::kTimedOut);
  history.set(0);
  history.end(slow, op::ResultCode::kStored);
  history.read(0, slow);
  history.read(0, failed, 1);
  CHECK(history.failure() == "");
}

TEST_CASE("a failed request is over when its session is") {
  Told history(Registers::kThroughProxy);
  history.allow_failures();
  Request& failed = history.ask(Kind::kSet, 0);
  history.end(failed, op::ResultCode::kSessionLost);
  history.end_session(failed.session);
  history.set(0);
  history.read(0, failed);
  CHECK(history.is_stale());
}

TEST_CASE("through a proxy nothing comes back that was deleted through it, found or not, or flushed") {
  for (const op::ResultCode code : {op::ResultCode::kDeleted, op::ResultCode::kMiss, op::ResultCode::kOk}) {
    Told history(Registers::kThroughProxy);
    const Request& one = history.set(0);
    if (code == op::ResultCode::kOk) {
      history.end(history.ask(Kind::kFlush, 0, 1), code);
    } else {
      history.remove(0, code, 1);
    }
    history.read(1, one);
    CHECK(history.failure() == "");
    history.read(0, one);
    CHECK(history.is_stale());
  }
}

TEST_CASE("an addition refused for what was deleted through the same proxy is noticed") {
  Told history(Registers::kThroughProxy);
  history.set(0);
  history.remove(0, op::ResultCode::kDeleted, 1);
  history.end(history.ask(Kind::kAdd, 1), op::ResultCode::kNotStored);
  CHECK(history.failure() == "");
  history.end(history.ask(Kind::kAdd, 0), op::ResultCode::kNotStored);
  CHECK(history.has_failed());
}

TEST_CASE("what was missed may come back where another stood in, not else") {
  for (const Registers registers : {Registers::kThroughProxy, Registers::kPerKey}) {
    Told history(registers);
    history.allow_misses();
    const Request& one = history.set(0);
    history.miss(0, 1);
    history.read(0, one);
    CHECK(history.is_stale() == (registers == Registers::kPerKey));
  }
}

TEST_CASE("a number does not go back through the proxy that added to it") {
  Told history(Registers::kThroughProxy);
  history.add(0, nullptr, 0);
  const Request& created = *history.last;
  history.add(0, &created, 1);
  history.add(1, nullptr, 0, 1);
  const Request& another = *history.last;
  history.add(1, &another, 1, 1);
  CHECK(history.failure() == "");
  history.add(1, &created, 2);
  CHECK(history.is_stale());
}

TEST_CASE("a proxy that has looked reads nothing older than what was acknowledged through others before") {
  Told history(Registers::kThroughProxy);
  const Request& one = history.set(0, 0);
  const uint64_t early = history.now();
  history.set(0, 1);
  history.on_look(1, early);
  history.read(1, one, 0);
  CHECK(history.failure() == "");
  history.on_look(1, history.now());
  history.read(1, one, 0);
  CHECK(history.is_stale());
}

TEST_CASE("whatever the registers: no value that nobody wrote, of another key, or torn, and no answer twice") {
  for (const Registers registers : {Registers::kPerKey, Registers::kPerCopy, Registers::kThroughProxy}) {
    Told torn(registers);
    Request wrong = torn.set(0);
    wrong.value_length = 100;
    torn.read(0, wrong);
    CHECK(torn.has_failed());

    Told elsewhere(registers);
    Request& other = elsewhere.ask(Kind::kSet, 0, 0, 1);
    elsewhere.end(other, op::ResultCode::kStored);
    elsewhere.read(0, other);
    CHECK(elsewhere.has_failed());

    Told twice(registers);
    Request& one = twice.set(0);
    CHECK(!twice.has_failed());
    twice.end(one, op::ResultCode::kStored);
    CHECK(twice.has_failed());
  }
}

}  // namespace egret::sim
