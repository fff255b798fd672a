#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <span>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace egret::base {

namespace {

using Unit = std::pair<uint64_t, const char*>;

std::string with_unit(uint64_t figure, std::span<const Unit> largest_first) {
  for (const auto& [factor, unit] : largest_first) {
    if (figure >= factor && figure % factor == 0) return std::to_string(figure / factor) + unit;
  }
  return std::to_string(figure);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

void append_escaped(std::string& to, unsigned char byte) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  switch (byte) {
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7f) {
    to += static_cast<char>(byte);
  } else {
    to += "\\x";
    to += kHex[byte >> 4];
    to += kHex[byte & 15];
  }
}

std::string folded(std::string_view word) {
  std::string out(word);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return out;
}

// Levenshtein distance.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);  // distance of the letters of `from` read so far to each prefix of `to`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string quoted(std::string_view text, size_t limit) {
  std::string out = "\"";
  for (const char c : text.substr(0, limit)) append_escaped(out, static_cast<unsigned char>(c));
  return out + (text.size() > limit ? "...\"" : "\"");
}

std::string quoted_if_odd(std::string_view text) {
  constexpr size_t kLimit = 128;
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return !is_control(c); });
  return is_plain && text.size() <= kLimit ? std::string(text) : base::quoted(text, kLimit);
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_control(c)) {
      append_escaped(out, static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string size_text(uint64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits{
      {{1ull << 40, "TiB"}, {1ull << 30, "GiB"}, {1ull << 20, "MiB"}, {1ull << 10, "KiB"}, {1, "B"}}};
  return with_unit(bytes, kUnits);
}

std::string counted(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string duration_text(uint64_t ns) {
  static constexpr std::array<Unit, 4> kUnits{{{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};
  return with_unit(ns, kUnits);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view likely_meant(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kLongest = 64;  // an option's name is shorter
  if (word.size() > kLongest) return {};
  const std::string given = folded(word);
  std::string_view nearest;
  size_t least = std::min<size_t>(3, 1 + word.size() / 4);  // the most letters that may differ
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(given, folded(candidate));
    if (distance < least || (distance == least && nearest.empty())) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

std::string host_fault(std::string_view host) {
  if (host.find(':') != std::string_view::npos) {
    in6_addr ignored;
    const std::string address(host.substr(0, host.find('%')));
    return ::inet_pton(AF_INET6, address.c_str(), &ignored) == 1 ? "" : base::quoted(host) + " is no IPv6 address";
  }
  in_addr ignored;  // inet_aton() accepts 127.1, too
  const bool is_numeric = !host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!is_numeric || ::inet_aton(std::string(host).c_str(), &ignored) == 1) return "";
  return base::quoted(host) + " is no IPv4 address";
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address needs its brackets
  }
  HostPort parsed{std::string(host), 0};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, parsed.port);
  if (error != std::errc{} || end != last || host.empty()) return std::nullopt;
  return parsed;
}

}  // namespace egret::base
