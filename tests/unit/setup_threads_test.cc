// Threads that make what takes long of sessions, beside the control thread.
#include "setup/setup_threads.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>

#include "setup/completions.h"

using namespace egret::backend;
using egret::base::Status;

namespace {

// Where work waits until the test lets it go on.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::scoped_lock held(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t inside_ = 0;
  bool is_open_ = false;
};

SetupThreads::Done next(SetupThreads& threads) {
  SetupThreads::Done done;
  while (!threads.take(done)) {
    pollfd wanted{threads.fd(), POLLIN, 0};
    REQUIRE(::poll(&wanted, 1, 20'000) == 1);
  }
  return done;
}

bool is_readable(const SetupThreads& threads) {
  pollfd wanted{threads.fd(), POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

}  // namespace

TEST_CASE("each piece of work is done once, by another thread, and told of with its status") {
  SetupThreads threads(3);
  std::atomic<int> sum{0};
  std::atomic<int> here{0};
  const std::thread::id own = std::this_thread::get_id();
  for (uint64_t number = 1; number <= 100; ++number) {
    threads.submit(SetupThreads::Kind::kMake, number, [&, number] {
      sum += static_cast<int>(number);
      here += std::this_thread::get_id() == own ? 1 : 0;
      return number % 10 == 0 ? Status::error("ten") : Status::ok();
    });
  }
  std::set<uint64_t> numbers;
  for (int i = 0; i < 100; ++i) {
    const SetupThreads::Done done = next(threads);
    numbers.insert(done.number);
    CHECK(done.status.is_ok() == (done.number % 10 != 0));
    CHECK(done.took_ns > 0);
    CHECK(done.interval_ns <= done.took_ns);
  }
  CHECK(numbers.size() == 100);
  CHECK(sum == 5050);
  CHECK(here == 0);
  SetupThreads::Done none;
  CHECK_FALSE(threads.take(none));
  CHECK_FALSE(is_readable(threads));
}

TEST_CASE("as many are at work at once as there are threads; the rest waits, and can be withdrawn") {
  Gate gate;
  SetupThreads threads(2);
  std::atomic<bool> third{false};
  for (uint64_t number = 1; number <= 2; ++number) {
    threads.submit(SetupThreads::Kind::kMake, number, [&] {
      gate.pass();
      return Status::ok();
    });
  }
  gate.wait_for(2);
  const auto held = std::make_shared<int>(0);
  threads.submit(SetupThreads::Kind::kMake, 3, [&third, held] {
    third = true;
    return Status::ok();
  });
  threads.submit(SetupThreads::Kind::kMake, 4, [] { return Status::ok(); });
  CHECK(threads.waiting(SetupThreads::Kind::kMake) == 2);
  CHECK_FALSE(threads.withdraw(1));
  CHECK(threads.withdraw(3));
  CHECK(held.use_count() == 1);
  CHECK_FALSE(threads.withdraw(3));
  CHECK(threads.waiting(SetupThreads::Kind::kMake) == 1);
  gate.open();
  std::set<uint64_t> numbers;
  for (int i = 0; i < 3; ++i) numbers.insert(next(threads).number);
  CHECK(numbers == std::set<uint64_t>{1, 2, 4});
  CHECK_FALSE(threads.withdraw(1));
  CHECK_FALSE(third);
}

TEST_CASE("what is made and what ends are begun in turn, each in its order: neither waits for all of the other") {
  Gate gate;
  SetupThreads threads(1);
  threads.submit(SetupThreads::Kind::kMake, 0, [&] {
    gate.pass();
    return Status::ok();
  });
  gate.wait_for(1);
  for (uint64_t number = 1; number <= 4; ++number) {
    threads.submit(SetupThreads::Kind::kEnd, 10 + number, [] { return Status::ok(); });
  }
  for (uint64_t number = 1; number <= 2; ++number) {
    threads.submit(SetupThreads::Kind::kMake, 20 + number, [] { return Status::ok(); });
  }
  CHECK(threads.waiting(SetupThreads::Kind::kEnd) == 4);
  gate.open();
  std::vector<uint64_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(next(threads).number);
  CHECK(order == std::vector<uint64_t>{0, 11, 21, 12, 22, 13, 14});
}

TEST_CASE("at its end it waits for what is under way, and drops what is not") {
  Gate gate;
  std::atomic<int> done{0};
  const auto held = std::make_shared<int>(0);
  std::thread opener;
  {
    SetupThreads threads(1);
    threads.submit(SetupThreads::Kind::kMake, 1, [&] {
      gate.pass();
      ++done;
      return Status::ok();
    });
    gate.wait_for(1);
    threads.submit(SetupThreads::Kind::kMake, 2, [&done, held] {
      ++done;
      return Status::ok();
    });
    opener = std::thread([&] { gate.open(); });
  }
  opener.join();
  CHECK(done >= 1);
  CHECK(held.use_count() == 1);
}

TEST_CASE("intervals are those of a device that does one at a time, or of as many threads as there are") {
  Completions one_after_the_other;
  for (uint64_t done = 1400; done <= 5600; done += 1400)
    CHECK(one_after_the_other.interval_ns(1000, 1000 + done) == 1400);
  CHECK(one_after_the_other.interval_ns(50'000, 50'700) == 700);  // after a pause
  Completions beside;
  uint64_t sum = 0;
  for (uint64_t round = 1000; round < 11'000; round += 1000) {
    for (uint64_t thread = 0; thread < 4; ++thread) sum += beside.interval_ns(round, round + 1000);
  }
  CHECK(sum == 10'000);  // 40 pieces, 250 each
  CHECK(beside.interval_ns(20'000, 20'000) == 0);
}
