// Events: a handler is called when its event happens, as often as was asked for, and never after the event is gone.
#include "events/event.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sanitized.h"

using namespace egret::events;
using namespace std::chrono_literals;

namespace {

// Counts how often it was called; stops the loop at `stop_at`.
struct Counter {
  EventLoop loop;
  int calls = 0;
  int stop_at = 1;

  void on_event() {
    if (++calls == stop_at) loop.stop();
  }
};

struct Pipe {
  Pipe() { REQUIRE(::pipe(ends) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void write() const { REQUIRE(::write(ends[1], "x", 1) == 1); }
  void read() const {
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1);
  }
  int ends[2] = {-1, -1};
};

}  // namespace

TEST_CASE("a timer goes off once") {
  Counter counter;
  Event timer = Event::timer<&Counter::on_event>(counter.loop, counter);
  CHECK(!timer.pending());
  timer.add(1ms);
  CHECK(timer.pending());
  counter.loop.run();
  CHECK(counter.calls == 1);
  CHECK(!timer.pending());
}

TEST_CASE("a persistent timer goes off until it is removed") {
  Counter counter;
  counter.stop_at = 3;
  Event timer = Event::timer<&Counter::on_event>(counter.loop, counter, kPersist);
  timer.add(1ms);
  counter.loop.run();
  CHECK(counter.calls == 3);
  CHECK(timer.pending());
  timer.del();
  CHECK(!timer.pending());
  counter.loop.run();  // returns at once: there is nothing to wait for
  CHECK(counter.calls == 3);
}

TEST_CASE("a time that was given is replaced by a later add") {
  Counter counter;
  Event timer = Event::timer<&Counter::on_event>(counter.loop, counter);
  timer.add(1h);
  timer.add(2s);
  timer.add(1ms);
  counter.loop.run();
  CHECK(counter.calls == 1);
}

TEST_CASE("a handler may be a lambda that takes the owner") {
  Counter counter;
  constexpr auto kTwice = [](Counter& owner) { owner.calls += 2, owner.loop.stop(); };
  Event timer = Event::timer<kTwice>(counter.loop, counter);
  timer.add(0ms);
  counter.loop.run();
  CHECK(counter.calls == 2);
}

TEST_CASE("a destroyed event is not handled, even if it has happened already") {
  Counter counter;
  Event timer = Event::timer<&Counter::on_event>(counter.loop, counter);
  SUBCASE("destroyed") {
    { Event other = std::move(timer); }
  }
  SUBCASE("reset") {
    timer.activate();
    timer.reset();
  }
  SUBCASE("replaced") {
    timer.activate();
    timer = Event::timer<&Counter::on_event>(counter.loop, counter);
  }
  counter.loop.run_once(false);
  CHECK(counter.calls == 0);
  CHECK(!timer.pending());
}

TEST_CASE("an Event that was moved is the same event") {
  Counter counter;
  Event first = Event::timer<&Counter::on_event>(counter.loop, counter);
  first.add(1ms);
  Event second = std::move(first);
  CHECK(second.pending());
  CHECK(!first.is_set());  // NOLINT(bugprone-use-after-move): what is left is defined
  CHECK(!first.pending());
  counter.loop.run();
  CHECK(counter.calls == 1);
}

TEST_CASE("a descriptor: once, for as long as it is ready, and each time it becomes ready") {
  Counter counter;
  counter.stop_at = -1;
  const Pipe pipe;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) counter.loop.run_once(false);
    return std::exchange(counter.calls, 0);
  };
  SUBCASE("once") {
    Event readable = Event::on_fd<&Counter::on_event>(counter.loop, pipe.ends[0], kRead, counter);
    CHECK(readable.flags() == kRead);
    REQUIRE(readable.add());
    CHECK(rounds(3) == 0);
    pipe.write();
    CHECK(rounds(3) == 1);
    REQUIRE(readable.add());
    CHECK(rounds(3) == 1);
  }
  SUBCASE("for as long as it is ready") {
    Event readable = Event::on_fd<&Counter::on_event>(counter.loop, pipe.ends[0], kRead | kPersist, counter);
    REQUIRE(readable.add());
    pipe.write();
    CHECK(rounds(3) == 3);
    pipe.read();
    CHECK(rounds(3) == 0);
  }
  SUBCASE("each time it becomes ready") {
    Event readable = Event::on_fd<&Counter::on_event>(counter.loop, pipe.ends[0], kRead | kPersist | kEdge, counter);
    REQUIRE(readable.add());
    pipe.write();
    CHECK(rounds(3) == 1);
    pipe.write();
    CHECK(rounds(3) == 1);
  }
  SUBCASE("writable") {
    Event writable = Event::on_fd<&Counter::on_event>(counter.loop, pipe.ends[1], kWrite, counter);
    REQUIRE(writable.add());
    CHECK(rounds(3) == 1);
  }
}

TEST_CASE("an activated event is handled in the next round, whether it is in the loop or not") {
  Counter counter;
  const Pipe pipe;
  Event readable = Event::on_fd<&Counter::on_event>(counter.loop, pipe.ends[0], kRead, counter);
  readable.activate();
  CHECK(counter.calls == 0);
  counter.loop.run_once(false);
  CHECK(counter.calls == 1);
}

TEST_CASE("run_once waits for the first event if it may") {
  Counter counter;
  Event timer = Event::timer<&Counter::on_event>(counter.loop, counter);
  timer.add(1ms);
  counter.loop.run_once(true);
  CHECK(counter.calls == 1);
}

TEST_CASE("a signal is handled each time") {
  Counter counter;
  Event signal = Event::on_signal<&Counter::on_event>(counter.loop, SIGUSR1, counter);
  REQUIRE(signal.add());
  for (int i = 1; i <= 2; ++i) {
    counter.stop_at = i;
    ::raise(SIGUSR1);
    counter.loop.run();
    CHECK(counter.calls == i);
  }
}

TEST_CASE("a signal whose event is gone does nothing: a second SIGTERM does not cut an orderly end short") {
  Counter counter;
  {
    Event signal = Event::on_signal<&Counter::on_event>(counter.loop, SIGUSR1, counter);
    REQUIRE(signal.add());
    ::raise(SIGUSR1);
    counter.loop.run();
    CHECK(counter.calls == 1);
  }
  ::raise(SIGUSR1);  // by default it would end this test
  Event again = Event::on_signal<&Counter::on_event>(counter.loop, SIGUSR1, counter);
  REQUIRE(again.add());
  counter.loop.run_once(false);
  CHECK(counter.calls == 1);
  again.activate();
  counter.loop.run_once(false);
  CHECK(counter.calls == 2);
}

TEST_CASE("a descriptor that the system does not wait for is an error, and the event is not in the loop") {
  Counter counter;
  std::FILE* const file = std::tmpfile();  // epoll takes no plain file
  REQUIRE(file != nullptr);
  Event readable = Event::on_fd<&Counter::on_event>(counter.loop, ::fileno(file), kRead, counter);
  const egret::base::Status added = readable.add();
  CHECK(!added);
  CHECK(added.message().starts_with("cannot wait for a descriptor: "));
  CHECK(!readable.pending());
  readable.reset();
  std::fclose(file);
}

// UBSan needs a descriptor itself to look at the exception's category.
TEST_CASE("a loop that cannot be had is an exception" * doctest::skip(egret::kSanitized)) {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_THROWS_AS(EventLoop(), std::system_error);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}
