#include "bench_verbs/wake.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include <sys/eventfd.h>
#include <unistd.h>

namespace egret::bench_verbs {

namespace {

constexpr uint32_t kRounds = 2000;
constexpr std::chrono::milliseconds kLongest{20};

class Bell {
 public:
  Bell() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_there() const { return fd_ >= 0; }
  void ring(uint64_t count) { (void)!::write(fd_, &count, sizeof count); }
  // Sleeps until it is rung.
  uint64_t wait() {
    uint64_t count = 0;
    (void)!::read(fd_, &count, sizeof count);
    return count;
  }

 private:
  const int fd_;
};

}  // namespace

double measure_wake_us() {
  constexpr uint64_t kAgain = 1, kEnough = 2;
  Bell there, back;
  if (!there.is_there() || !back.is_there()) return 0;
  std::thread other([&] {
    while (there.wait() == kAgain) back.ring(kAgain);
  });
  const auto begun = std::chrono::steady_clock::now();
  uint32_t rounds = 0;
  while (rounds < kRounds && std::chrono::steady_clock::now() - begun < kLongest) {
    there.ring(kAgain);
    back.wait();
    ++rounds;
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
  there.ring(kEnough);
  other.join();
  return took.count() / (2.0 * rounds);
}

}  // namespace egret::bench_verbs
