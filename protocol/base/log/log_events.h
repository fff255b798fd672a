// The log events of the daemons, as rows. A row gives the level and the name of its lines, its entry in docs/reference,
// and its entry in the journal's message catalog, which `journalctl -x` shows.
//
//   kSessionLost (a row) ─┬─▶ base::log(kSessionLost, "...", ...)
//   a daemon's table ─────┴─▶ events_markdown, events_catalog
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace egret::base {

enum class LogLevel : uint8_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// One log event: a row of a daemon's table, a constant that lives as long as the program.
struct LogEvent {
  std::string_view name;  // "session_lost": never changes, since people search for it
  std::string_view id;    // 32 hex digits, never changed either: the journal's MESSAGE_ID and the catalog's key
  LogLevel level;
  std::string_view meaning;   // a sentence or two, no line breaks
  std::string_view advice{};  // what to do about it; empty: nothing
};

// Events of the logging code itself, which any daemon may log.
inline constexpr LogEvent kWithheld{
    .name = "withheld",
    .id = "9df1281affeb4d69b351896a8e1b641c",
    .level = LogLevel::kWarning,
    .meaning = "So many lines like the next one were suppressed since the last one, so that nobody can fill the disk.",
    .advice = "Follow the advice for the next line. The counters in /metrics have no such limit."};
inline constexpr LogEvent kHostProblem{
    .name = "host_problem",
    .id = "1f83a021e86d44659a5b222ed8bd034f",
    .level = LogLevel::kWarning,
    .meaning = "A check at the start, as in --doctor, found that this host does not fit the configuration.",
    .advice = "Do what the line says after the arrow, or see --doctor."};
inline constexpr LogEvent kReloaded{
    .name = "reloaded",
    .id = "5b46d92e658747188be995c8ce5072e2",
    .level = LogLevel::kInfo,
    .meaning = "The configuration was read again and is in force; the line names the options that have changed."};
inline constexpr LogEvent kNeedsRestart{
    .name = "needs_restart",
    .id = "a4b44180d541437d8dfd9a10e2f2103e",
    .level = LogLevel::kWarning,
    .meaning = "A reload cannot apply this changed option; the old value stays until a restart.",
    .advice = "Restart the unit when convenient."};
inline constexpr LogEvent kReloadRefused{
    .name = "reload_refused",
    .id = "722e02c52ca446b7957b337d247c019a",
    .level = LogLevel::kError,
    .meaning = "The configuration was read again and is wrong. The whole old one stays in force.",
    .advice = "Correct the error (the line has file, line and key), and reload again."};
std::span<const LogEvent* const> base_log_events();

using LogEvents = std::vector<const LogEvent*>;
// Joins a daemon's own table with those of the libraries that it uses.
LogEvents joined(std::initializer_list<std::span<const LogEvent* const>> tables);

// The table as GitHub's Markdown, for docs/reference; and as the journal's message catalog of `program`.
std::string events_markdown(std::span<const LogEvent* const> events);
std::string events_catalog(std::string_view program, std::span<const LogEvent* const> events);

}  // namespace egret::base
