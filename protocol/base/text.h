// Small helpers for text that people read: quoting what somebody else wrote, and figures with their units.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace egret::base {

// `text` in double quotes, safe to print on one line whatever it holds: control characters, quotes, backslashes and
// bytes above 126 become \n, \" or \x9f, and what is longer than `limit` bytes ends in "...".
std::string quoted(std::string_view text, size_t limit = 64);

// `text` as it is when it is short and free of control characters, else quoted(text, 128).
std::string quoted_if_odd(std::string_view text);

// `text` with its control characters escaped as in quoted(), and nothing else changed: one line, whatever it holds.
std::string one_line(std::string_view text);

// 67108864 -> "64MiB", 1000 -> "1000B": the largest unit that divides it.
std::string size_text(uint64_t bytes);

// 1, "worker" -> "1 worker"; 2, "worker" -> "2 workers".
std::string counted(uint64_t count, std::string_view noun);

// 2'000'000 -> "2ms": the largest unit, up to the second, that divides it.
std::string duration_text(uint64_t ns);

// Without the spaces around it.
std::string_view trimmed(std::string_view text);

// The trimmed parts of `text`; none if it is empty.
std::vector<std::string> split(std::string_view text, char separator);

// The candidate that `word` is most likely a misspelling of, or nothing: few letters differ, '-' counts as '_', and
// capitals as small letters.
std::string_view likely_meant(std::string_view word, std::span<const std::string_view> candidates);

// What is wrong with `host` as it is written, or nothing: digits and dots must be an IPv4 address, what has a colon an
// IPv6 address (with %zone or without). Names are not looked up.
std::string host_fault(std::string_view host);

// "1.2.3.4:5", "[::1]:5" or "name:5", without the brackets; nothing for anything else. Port 0 is one.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace egret::base
