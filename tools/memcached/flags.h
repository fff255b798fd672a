// memcached's flags, one row each. Parsing, --help and the table in docs/reference come from this table.
//
// A row is a flag -X/--name, or -o name[=value]. It has the type and limits of the flag's value, and its effect: it
// sets an option of a daemon (the usual case, which needs nothing else); `apply` writes it to the Request, because
// several flags decide together; it is ignored (one line of the log names it); or it is refused.
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
  kOptionalText,  // may be empty; with -o it may be missing
  kWhole,         // an integer from min to max
  kReal,          // a number above min, at most max
};

enum class Fate : uint8_t {
  kOption,   // sets `option` of `daemon`
  kApplied,  // see `apply` and `becomes`
  kIgnored,  // has no meaning here; the log names it
  kRefused,  // must not be ignored; `becomes` says why
};

enum class Daemon : uint8_t { kProxy, kBackend };

inline constexpr std::string_view kKilobytes = "{} * 1024";  // Flag::setting of a flag in KiB

struct Flag {
  char letter = '\0';       // '\0': no short form
  std::string_view name{};  // without its dashes
  bool is_extended = false;
  Value value = Value::kNone;
  std::string_view value_name{};  // for --help: num, file
  double min = 0;
  double max = 0;
  Fate fate = Fate::kApplied;
  Daemon daemon = Daemon::kProxy;
  std::string_view option{};        // kIgnored: the row of `stats settings` that shows the given value
  std::string_view setting = "{}";  // the option's value: {} is the given value; "a|b": the given value is an index
  std::string_view becomes{};       // for docs/reference, if `option` does not explain the effect
  std::string_view help{};
  bool is_hidden = false;  // not in --help, where test suites look for features
  std::optional<Refusal> (*apply)(Request& request, const std::string& value) = nullptr;
};

std::span<const Flag> flag_table();

// The flag as --help and docs/reference show it: "-p, --port=<num>", "-o idle_timeout".
std::string shown(const Flag& flag);

std::string help_text();
std::string help_markdown();  // the table in docs/reference

}  // namespace egret::memcached
