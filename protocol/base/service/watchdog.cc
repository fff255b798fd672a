#include "base/service/watchdog.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/service/notify.h"

namespace egret::base {

namespace {

constexpr uint64_t kBeatsPerPing = 4;
constexpr uint64_t kMaxMicroseconds = 86'400'000'000;  // a day; longer times are cut to it

// 0: the variable is not set, or not a number.
uint64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return 0;
  const std::string_view view(text);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(view.begin(), view.end(), number);
  return error == std::errc() && end == view.end() ? number : 0;
}

// WATCHDOG_PID names the process that the watchdog is for, since children inherit the variables.
uint64_t interval_us() {
  const uint64_t pid = number_in("WATCHDOG_PID");
  if (pid != 0 && pid != static_cast<uint64_t>(::getpid())) return 0;
  return std::min(number_in("WATCHDOG_USEC"), kMaxMicroseconds) / kBeatsPerPing;
}

}  // namespace

Watchdog::Watchdog(size_t threads) : interval_us_(interval_us()), answered_(threads) {}

bool Watchdog::beat() {
  for (size_t thread = 0; thread < threads(); ++thread) {
    if (!has_answered(thread, beaten_)) return false;
  }
  beaten_ = call();
  notify_supervisor_at_once("WATCHDOG=1");  // a session that begins meanwhile does not wait for the supervisor
  return true;
}

uint64_t Watchdog::call() {
  return calls_.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace egret::base
