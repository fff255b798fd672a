#include "seeds.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define EGRET_DEATH_CALLBACK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EGRET_DEATH_CALLBACK 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(EGRET_DEATH_CALLBACK)
#define EGRET_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EGRET_SLOW_BUILD 1
#endif
#endif
#ifdef EGRET_DEATH_CALLBACK
#include <sanitizer/common_interface_defs.h>
#endif

namespace egret::sim {

namespace {

volatile std::sig_atomic_t running = 0;
uint64_t current_seed = 0;

void tell_seed() {
  if (!running) return;
  running = 0;
  char line[96];
  const int length =
      std::snprintf(line, sizeof line, "\nseed %llu ended the process; EGRET_SIM_SEED=%llu replays it\n",
                    static_cast<unsigned long long>(current_seed), static_cast<unsigned long long>(current_seed));
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<size_t>(length));
}

void on_signal(int signal) {
  tell_seed();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void install_once() {
  static const bool installed = [] {
#ifdef EGRET_DEATH_CALLBACK
    __sanitizer_set_death_callback(tell_seed);
#else
    std::signal(SIGSEGV, on_signal);
#endif
    std::signal(SIGABRT, on_signal);
    return true;
  }();
  static_cast<void>(installed);
}

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool run_one(uint64_t seed, const std::function<std::string(uint64_t)>& run) {
  current_seed = seed;
  running = 1;
  const std::string failure = run(seed);
  running = 0;
  if (failure.empty()) return true;
  FAIL_CHECK("seed " << seed << ": " << failure << "\n  replay: EGRET_SIM_SEED=" << seed);
  return false;
}

}  // namespace

bool is_met(uint64_t count) {
  return count > 0 || std::getenv("EGRET_SIM_SEED") != nullptr;
}

void for_each_seed(uint64_t seeds, const std::function<std::string(uint64_t)>& run) {
  install_once();
#ifdef EGRET_SLOW_BUILD
  seeds = seeds / 4 + 1;
#endif
  if (std::getenv("EGRET_SIM_SEED") != nullptr) {
    run_one(from_environment("EGRET_SIM_SEED", 1), run);
    return;
  }
  const uint64_t first = from_environment("EGRET_SIM_FIRST", 1);
  const uint64_t seconds = from_environment("EGRET_SIM_SECONDS", 0);
  const uint64_t count = from_environment("EGRET_SIM_SEEDS", seconds > 0 ? UINT64_MAX - first : seeds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!run_one(seed, run)) return;
    if (seconds > 0 && std::chrono::steady_clock::now() >= end) return;
  }
}

}  // namespace egret::sim
