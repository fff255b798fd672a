#include "base/log/log_events.h"

namespace egret::base {

namespace {

constexpr const LogEvent* kBaseEvents[] = {&kReloaded, &kNeedsRestart, &kReloadRefused, &kHostProblem, &kWithheld};

std::string_view level_name(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

}  // namespace

std::span<const LogEvent* const> base_log_events() {
  return kBaseEvents;
}

LogEvents joined(std::initializer_list<std::span<const LogEvent* const>> tables) {
  LogEvents all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

std::string events_markdown(std::span<const LogEvent* const> events) {
  std::string text = "| event | level | what it says | what to do |\n| --- | --- | --- | --- |\n";
  for (const LogEvent* event : events) {
    text.append("| `").append(event->name).append("` | ").append(level_name(event->level)).append(" | ");
    text.append(event->meaning).append(" | ").append(event->advice.empty() ? "–" : event->advice).append(" |\n");
  }
  return text;
}

// The format of a systemd message catalog: "-- ID", header lines, an empty line, text.
std::string events_catalog(std::string_view program, std::span<const LogEvent* const> events) {
  std::string text;
  for (const LogEvent* event : events) {
    text.append("-- ").append(event->id).append("\nSubject: ").append(program).append(": ").append(event->name);
    text.append("\nDefined-By: Egret\nDocumentation: man:").append(program).append("(8)\n\n").append(event->meaning);
    if (!event->advice.empty()) text.append("\n\n").append(event->advice);
    text.append("\n\n");
  }
  return text;
}

}  // namespace egret::base
