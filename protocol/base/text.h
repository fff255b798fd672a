// Helpers for text that people read: quoting foreign text, and figures with units.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace egret::base {

// `text` in double quotes, on one line: control characters, quotes, backslashes and bytes above 126 become \n, \" or
// \x9f; a text longer than `limit` bytes is cut and ends in "...".
std::string quoted(std::string_view text, size_t limit = 64);

// `text` unchanged if it is short and has no control characters, else quoted(text, 128).
std::string quoted_if_odd(std::string_view text);

// `text` on one line: control characters are escaped as in quoted(), the rest is unchanged.
std::string one_line(std::string_view text);

// 67108864 -> "64MiB", 1000 -> "1000B": the largest unit that divides it.
std::string size_text(uint64_t bytes);

// 1, "worker" -> "1 worker"; 2, "worker" -> "2 workers".
std::string counted(uint64_t count, std::string_view noun);

// 2'000'000 -> "2ms": the largest unit, up to the second, that divides it.
std::string duration_text(uint64_t ns);

// Removes spaces at both ends.
std::string_view trimmed(std::string_view text);

// The trimmed parts of `text`; none if `text` is empty.
std::vector<std::string> split(std::string_view text, char separator);

// The candidate of which `word` is most likely a misspelling (few letters differ), or nothing. '-' equals '_'; case
// does not matter.
std::string_view likely_meant(std::string_view word, std::span<const std::string_view> candidates);

// What is wrong with the syntax of `host`, or nothing. Digits and dots must be an IPv4 address; a text with a colon
// must be an IPv6 address, with or without %zone. Names are not looked up.
std::string host_fault(std::string_view host);

// The parts of "1.2.3.4:5", "[::1]:5" (without the brackets) or "name:5"; nothing for any other text. Port 0 is valid.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace egret::base
