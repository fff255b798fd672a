// The CPU of a partition thread, by its affinity.
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "backend/cpu_follower.h"
#include "base/cpu.h"

using egret::backend::CpuFollower;
namespace base = egret::base;

namespace {

using Cpus = std::vector<int>;

void hear(CpuFollower& follower, int cpu, uint32_t times = CpuFollower::kSure) {
  for (uint32_t i = 0; i < times; ++i) follower.on_ring(cpu);
}

// In a thread of its own, so that nobody else is moved.
void in_thread(const std::function<void(CpuFollower&, const Cpus&)>& work) {
  const Cpus all = base::allowed_cpus();
  std::thread([&] {
    CpuFollower follower(all);
    work(follower, all);
  }).join();
  CHECK(base::allowed_cpus() == all);
}

}  // namespace

TEST_CASE("a thread may run anywhere until it is sure where those are that it serves") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    hear(follower, all.back(), CpuFollower::kSure - 1);
    CHECK(base::allowed_cpus() == all);
    follower.on_ring(all.back());
    CHECK(base::allowed_cpus() == Cpus{all.back()});
  });
}

TEST_CASE("it follows them") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    for (const int cpu : all) {
      hear(follower, cpu);
      CHECK(base::allowed_cpus() == Cpus{cpu});
    }
  });
}

TEST_CASE("a few rings from another CPU, or any number from different CPUs, do not move the thread") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    hear(follower, all.front());
    for (int i = 0; i < 100; ++i) {
      hear(follower, i % 2 == 0 ? all.back() : -1, CpuFollower::kSure - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
      follower.on_ring(all.front());
    }
    for (int i = 0; i < 100; ++i) follower.on_ring(i % 2 == 0 ? all.back() : all.front());
    CHECK(base::allowed_cpus() == Cpus{all.front()});
  });
}

TEST_CASE("it may run anywhere again when they are on several CPUs, or do not say") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    hear(follower, all.front());
    hear(follower, -1);
    CHECK(base::allowed_cpus() == all);
  });
}

TEST_CASE("the pinning ends now and then, and begins again if rings go on") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    hear(follower, all.front());
    for (int i = 0; i < 3; ++i) {
      hear(follower, all.front(), CpuFollower::kStay - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
      follower.on_ring(all.front());
      CHECK_MESSAGE(base::allowed_cpus() == all, "for as long as it hears nothing, it would stay up");
      hear(follower, all.front(), CpuFollower::kSure - 1);
      CHECK(base::allowed_cpus() == Cpus{all.front()});
    }
  });
}

TEST_CASE("it gets up when it has no time to sleep any more") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    const auto stay_awake = [&](uint32_t times) {
      for (uint32_t i = 0; i < times; ++i) follower.on_busy();
    };
    stay_awake(CpuFollower::kSleepless);
    hear(follower, all.front());
    stay_awake(CpuFollower::kSleepless - 1);
    follower.on_ring(all.front());
    stay_awake(CpuFollower::kSleepless - 1);
    CHECK_MESSAGE(base::allowed_cpus() == Cpus{all.front()}, "it has slept between");
    stay_awake(1);
    CHECK(base::allowed_cpus() == all);
  });
}

TEST_CASE("a CPU that it may not use, or that is none, is none to sit on") {
  in_thread([](CpuFollower& follower, const Cpus& all) {
    for (const int cpu : {all.back() + 1, 65534, 1 << 30, -2, -(1 << 30)}) {
      hear(follower, cpu);
      CHECK(base::allowed_cpus() == all);
    }
    hear(follower, all.front());
    hear(follower, 65534);
    CHECK(base::allowed_cpus() == all);
  });
}
