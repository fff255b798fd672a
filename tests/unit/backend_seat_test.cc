// Where a partition thread sits, as its affinity shows.
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "backend/seat.h"
#include "base/cpu.h"

using egret::backend::Seat;
namespace base = egret::base;

namespace {

using Cpus = std::vector<int>;

void hear(Seat& seat, int cpu, uint32_t times = Seat::kSure) {
  for (uint32_t i = 0; i < times; ++i) seat.heard(cpu);
}

// In a thread of its own, so that nobody else is moved.
void in_thread(const std::function<void(Seat&, const Cpus&)>& work) {
  const Cpus all = base::allowed_cpus();
  std::thread([&] {
    Seat seat(all);
    work(seat, all);
  }).join();
  CHECK(base::allowed_cpus() == all);
}

}  // namespace

TEST_CASE("a thread may run anywhere until it is sure where those are that it serves") {
  in_thread([](Seat& seat, const Cpus& all) {
    hear(seat, all.back(), Seat::kSure - 1);
    CHECK(base::allowed_cpus() == all);
    seat.heard(all.back());
    CHECK(base::allowed_cpus() == Cpus{all.back()});
  });
}

TEST_CASE("it follows them") {
  in_thread([](Seat& seat, const Cpus& all) {
    for (const int cpu : all) {
      hear(seat, cpu);
      CHECK(base::allowed_cpus() == Cpus{cpu});
    }
  });
}

TEST_CASE("a few rings from elsewhere, and any number that disagree, move nobody") {
  in_thread([](Seat& seat, const Cpus& all) {
    hear(seat, all.front());
    for (int i = 0; i < 100; ++i) {
      hear(seat, i % 2 == 0 ? all.back() : -1, Seat::kSure - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
      seat.heard(all.front());
    }
    for (int i = 0; i < 100; ++i) seat.heard(i % 2 == 0 ? all.back() : all.front());
    CHECK(base::allowed_cpus() == Cpus{all.front()});
  });
}

TEST_CASE("it may run anywhere again when they are on several CPUs, or do not say") {
  in_thread([](Seat& seat, const Cpus& all) {
    hear(seat, all.front());
    hear(seat, -1);
    CHECK(base::allowed_cpus() == all);
  });
}

TEST_CASE("it gets up now and then, and sits down again if it still hears rings") {
  in_thread([](Seat& seat, const Cpus& all) {
    hear(seat, all.front());
    for (int i = 0; i < 3; ++i) {
      hear(seat, all.front(), Seat::kStay - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
      seat.heard(all.front());
      CHECK_MESSAGE(base::allowed_cpus() == all, "for as long as it hears nothing, it would stay up");
      hear(seat, all.front(), Seat::kSure - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
    }
  });
}

TEST_CASE("it gets up when it has no time to sleep any more") {
  in_thread([](Seat& seat, const Cpus& all) {
    const auto stay_awake = [&](uint32_t times) {
      for (uint32_t i = 0; i < times; ++i) seat.does_not_sleep();
    };
    stay_awake(Seat::kSleepless);
    hear(seat, all.front());
    stay_awake(Seat::kSleepless - 1);
    seat.heard(all.front());
    stay_awake(Seat::kSleepless - 1);
    CHECK_MESSAGE(base::allowed_cpus() == Cpus{all.front()}, "it has slept between");
    stay_awake(1);
    CHECK(base::allowed_cpus() == all);
  });
}

TEST_CASE("a CPU that it may not use, or that is none, is none to sit on") {
  in_thread([](Seat& seat, const Cpus& all) {
    for (const int cpu : {all.back() + 1, 65534, 1 << 30, -2, -(1 << 30)}) {
      hear(seat, cpu);
      CHECK(base::allowed_cpus() == all);
    }
    hear(seat, all.front());
    hear(seat, 65534);
    CHECK(base::allowed_cpus() == all);
  });
}
