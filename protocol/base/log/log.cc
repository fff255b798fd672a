#include "base/log/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"

namespace egret::base {

namespace {

std::atomic<LogLevel> minimum{LogLevel::kInfo};

void write_to_stderr(const LogEvent& event, std::span<const LogField> /*fields*/, const std::string& line) {
  const std::string text = fmt::format("{}: {} [{}]\n", to_string(event.level), line, event.name);
  std::fputs(text.c_str(), stderr);
}

std::atomic<LogSink> current_sink{write_to_stderr};

}  // namespace

std::string_view to_string(LogLevel level) {
  static constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level) % kNames.size()];
}

LogLevel log_level_of(std::string_view text) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kWarning, LogLevel::kError}) {
    if (to_string(level) == text) return level;
  }
  return LogLevel::kInfo;
}

void set_log_sink(LogSink sink) {
  current_sink.store(sink, std::memory_order_release);
}

void set_log_level(LogLevel level) {
  minimum.store(level, std::memory_order_relaxed);
}

bool is_logged(LogLevel level) {
  return level >= minimum.load(std::memory_order_relaxed);
}

void write_log(const LogEvent& event, std::span<const LogField> fields, std::string_view message) {
  current_sink.load(std::memory_order_acquire)(event, fields, one_line(message));
}

LogLimit::Verdict LogLimit::admit(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  // Another thread that read the clock later may have been here first.
  const bool is_over = now_ns > interval_start_ && now_ns - interval_start_ >= interval_;
  if (passed_ == 0 || is_over) {
    interval_start_ = now_ns;
    passed_ = 0;
  }
  if (passed_ >= burst_) {
    ++withheld_;
    return {.passes = false, .withheld = 0};
  }
  ++passed_;
  return {.passes = true, .withheld = std::exchange(withheld_, 0)};
}

bool admit_log(LogLimit& limit, const LogEvent& event) {
  static const SystemClock clock;
  const LogLimit::Verdict verdict = limit.admit(clock.now_ns());
  if (verdict.withheld > 0 && is_logged(event.level)) {
    write_log(kWithheld, std::array{LogField{"withheld", std::to_string(verdict.withheld)}},
              fmt::format("{} such as the next withheld", counted(verdict.withheld, "message")));
  }
  return verdict.passes;
}

}  // namespace egret::base
