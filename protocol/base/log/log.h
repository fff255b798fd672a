// Logging, for cold paths only. One event is one line on stderr: control characters are escaped.
//
//   base::log(kSessionLost, "session with {} lost: {}", field("backend", address), field("why", why));
//   static base::LogLimit limit;                                  // for every line that a peer can provoke
//   base::log_limited(limit, kRefused, "refused a frame of {} bytes", field("bytes", size));
//
// Every event is a row of a table: its level, its meaning, and what the reader should do. The list in docs/reference
// and the journal's catalog (`journalctl -x`) come from the table. Arguments with a name are fields:
//
//   LogFormat::kText     2026-11-21 20:44:01.250 egret-proxy warning: session with shm:/run/b lost: ... [session_lost]
//   LogFormat::kJson     {"time": "...", "level": "warning", ..., "event": "session_lost", "backend": "shm:/run/b"}
//   LogFormat::kJournal  the text, and EGRET_EVENT=session_lost, EGRET_BACKEND=shm:/run/b as fields of the entry
//
// Where lines go is the sink's affair. That of daemons (setup_logging(), console.cc) is a facade over spdlog and
// nlohmann's JSON; a library gives one of its own. Messages are formatted by fmt.
// Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/log/log_events.h"

namespace egret::base {

// The choices of the option log_level, and the level of each text; info for any other text.
inline constexpr std::string_view kLogLevelChoices = "debug|info|warning|error";
std::string_view to_string(LogLevel level);
LogLevel log_level_of(std::string_view text);

enum class LogFormat : uint8_t { kAuto, kText, kJson, kJournal };  // kAuto: kJournal if stderr is the journal

// The choices of the option log_format; kAuto for any other text.
inline constexpr std::string_view kLogFormatChoices = "auto|text|json";
LogFormat log_format_of(std::string_view text);

// Lines go to stderr or the journal. main() calls it before other threads start. Without it: level info, text without a
// time.
void setup_logging(std::string_view program, LogLevel level, LogFormat format = LogFormat::kAuto);

// The level may change at any time (configuration reload).
void set_log_level(LogLevel level);
bool is_logged(LogLevel level);

// A named argument of log().
template <typename T>
struct LogArgument {
  std::string_view name;  // lower_case
  const T& value;
};
template <typename T>
LogArgument<T> field(std::string_view name, const T& value) {
  return {name, value};
}

struct LogField {
  std::string_view name;  // empty: not a field, only part of the message
  std::string value;
};

// What writes a line: control characters are escaped already.
using LogSink = void (*)(const LogEvent& event, std::span<const LogField> fields, const std::string& line);
void set_log_sink(LogSink sink);

// Writes one line, whatever the level. Control characters are escaped, so no peer can forge a line.
void write_log(const LogEvent& event, std::span<const LogField> fields, std::string_view message);

namespace internal {
template <typename T>
struct Named {
  using Value = T;
  static const T& value(const T& argument) { return argument; }
  static std::string_view name(const T&) { return {}; }
};
template <typename T>
struct Named<LogArgument<T>> {
  using Value = T;
  static const T& value(const LogArgument<T>& argument) { return argument.value; }
  static std::string_view name(const LogArgument<T>& argument) { return argument.name; }
};
}  // namespace internal

template <typename... T>
using LogFormatString = fmt::format_string<const typename internal::Named<T>::Value&...>;

template <typename... T>
void log(const LogEvent& event, LogFormatString<T...> format, const T&... arguments) {
  if (!is_logged(event.level)) return;
  const std::array<LogField, sizeof...(T)> fields{
      LogField{internal::Named<T>::name(arguments), fmt::to_string(internal::Named<T>::value(arguments))}...};
  write_log(event, fields, fmt::format(format, internal::Named<T>::value(arguments)...));
}

// Admits `burst` messages per interval and counts the rest, so that no peer can fill the disk.
// One object per place that logs; any thread.
class LogLimit {
 public:
  explicit LogLimit(uint32_t burst = 5, uint64_t interval_ns = 10'000'000'000)
      : burst_(burst), interval_(interval_ns) {}

  struct Verdict {
    bool passes;
    uint64_t withheld;  // messages suppressed since the last one that was admitted
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

// Calls admit() with the monotonic clock. Logs the number of suppressed messages as an event of its own, kWithheld.
bool admit_log(LogLimit& limit, const LogEvent& event);

template <typename... T>
void log_limited(LogLimit& limit, const LogEvent& event, LogFormatString<T...> format, const T&... arguments) {
  if (is_logged(event.level) && admit_log(limit, event)) log(event, format, arguments...);
}

}  // namespace egret::base
