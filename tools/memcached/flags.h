// memcached's flags, one row each: from this table come parsing, --help and the table in docs/reference.
//
// A row is one of -X/--name, or of -o name[=value]. It says what follows the flag and within which limits, and what
// becomes of it: an option of a daemon (the usual case, then nothing else is needed), something that `apply` puts into
// the Request because several flags decide it together, nothing (it is named in one line of the log), or a refusal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "memcached/request.h"

namespace egret::memcached {

enum class Value : uint8_t {
  kNone,
  kText,
  kOptionalText,  // may be empty or, of -o, left out
  kWhole,         // an integer from min to max
  kReal,          // a number above min, at most max
};

enum class Fate : uint8_t {
  kOption,   // becomes `option` of `daemon`
  kApplied,  // see `apply` and `becomes`
  kIgnored,  // has no meaning here; the log names it
  kRefused,  // ignoring it would be wrong; `becomes` says why
};

enum class Daemon : uint8_t { kProxy, kBackend };

inline constexpr std::string_view kKilobytes = "{} * 1024";  // a setting in bytes

struct Flag {
  char letter = '\0';       // '\0': only a long form
  std::string_view name{};  // without its dashes
  bool is_extended = false;
  Value value = Value::kNone;
  std::string_view value_name{};  // in --help: num, file
  double min = 0;
  double max = 0;
  Fate fate = Fate::kApplied;
  Daemon daemon = Daemon::kProxy;
  std::string_view option{};        // kIgnored: the row of `stats settings` that shows what was given
  std::string_view setting = "{}";  // the option's value: {} is what was given; if that indexes a list, "none|request"
  std::string_view becomes{};       // for docs/reference, where `option` does not say it
  std::string_view help{};
  bool is_hidden = false;  // not in --help: test suites look there for what they may try
  std::optional<Refusal> (*apply)(Request& request, const std::string& value) = nullptr;
};

std::span<const Flag> flag_table();

// "-p, --port=<num>", "-o idle_timeout": as --help and docs/reference show it.
std::string shown(const Flag& flag);

std::string help_text();
std::string help_markdown();  // the table in docs/reference

}  // namespace egret::memcached
