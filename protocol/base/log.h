// Logging, for cold paths only: one message is one line on stderr, whatever its parts hold.
//
//   base::log_info("session {} from {} opened", id, peer);
//   static base::LogLimit limit;                                  // anything that a peer can provoke
//   base::log_limited(limit, LogLevel::kWarning, "refused a frame of {} bytes", size);
//
// Under systemd (stderr is the journal) lines carry the journal's priority prefix and no time; elsewhere date, program
// and level. A facade over spdlog whose headers stay in log.cc; messages are formatted by fmt. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include <fmt/core.h>

namespace egret::base {

enum class LogLevel : uint8_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// For the option table's row log_level (a kChoice), and from its text to the level; info for anything else.
inline constexpr std::string_view kLogLevelChoices = "debug|info|warning|error";
LogLevel log_level_of(std::string_view text);

// Called by main() before other threads start. Without it: level info, no program name.
void setup_logging(std::string_view program, LogLevel level);

// The level may change at any time (configuration reload).
void set_log_level(LogLevel level);
bool is_logged(LogLevel level);

// Writes one line, unconditionally. Control characters in it are escaped, so no peer can forge a line.
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments);

template <typename... T>
void log(LogLevel level, fmt::format_string<T...> format, T&&... arguments) {
  if (is_logged(level)) write_log(level, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void log_debug(fmt::format_string<T...> format, T&&... arguments) {
  log(LogLevel::kDebug, format, std::forward<T>(arguments)...);
}
template <typename... T>
void log_info(fmt::format_string<T...> format, T&&... arguments) {
  log(LogLevel::kInfo, format, std::forward<T>(arguments)...);
}
template <typename... T>
void log_warning(fmt::format_string<T...> format, T&&... arguments) {
  log(LogLevel::kWarning, format, std::forward<T>(arguments)...);
}
template <typename... T>
void log_error(fmt::format_string<T...> format, T&&... arguments) {
  log(LogLevel::kError, format, std::forward<T>(arguments)...);
}

// Lets `burst` messages through in each interval and counts the rest, so that nobody can fill the disk from outside.
// One object per place that logs; any thread.
class LogLimit {
 public:
  explicit LogLimit(uint32_t burst = 5, uint64_t interval_ns = 10'000'000'000)
      : burst_(burst), interval_(interval_ns) {}

  struct Verdict {
    bool passes;
    uint64_t withheld;  // messages held back since the last one that passed
  };
  Verdict admit(uint64_t now_ns);

 private:
  std::mutex mutex_;
  const uint32_t burst_;
  const uint64_t interval_;
  uint64_t interval_start_ = 0;
  uint32_t passed_ = 0;  // in this interval
  uint64_t withheld_ = 0;
};

// As admit() with the monotonic clock; also says on its own line how many were withheld.
bool admit_log(LogLimit& limit, LogLevel level);

template <typename... T>
void log_limited(LogLimit& limit, LogLevel level, fmt::format_string<T...> format, T&&... arguments) {
  if (is_logged(level) && admit_log(limit, level)) write_log(level, format, fmt::make_format_args(arguments...));
}

}  // namespace egret::base
