#include "discovery/name_entry.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "pool/member.h"

namespace egret::discovery {

using base::Status;

namespace {

constexpr std::string_view kAddressPrefix = "dns+";
constexpr std::string_view kServicePrefix = "srv+";
static_assert(kAddressPrefix.size() == kServicePrefix.size());
constexpr std::array<std::string_view, 3> kTransports = {"rdma", "tcp", "rdma+tcp"};

// The transport of an entry that begins "dns+TRANSPORT:" or "srv+TRANSPORT:"; empty: it begins otherwise.
std::string_view entry_transport(std::string_view text) {
  if (!text.starts_with(kAddressPrefix) && !text.starts_with(kServicePrefix)) return {};
  text.remove_prefix(kAddressPrefix.size());
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const auto* const found = std::ranges::find(kTransports, text.substr(0, colon));
  return found == kTransports.end() ? std::string_view() : *found;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_label_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

// Reads "NAME:PORT" or "NAME". Returns what is wrong with it, or nothing.
std::string parse_place(std::string_view place, NameEntry& entry) {
  std::string host(place);
  if (entry.kind == NameKind::kAddresses) {
    const auto parsed = base::parse_host_port(place);
    if (!parsed || parsed->port == 0) return "expected dns+" + entry.transport + ":NAME:PORT";
    host = parsed->host;
    entry.port = parsed->port;
  } else if (place.find(':') != std::string_view::npos) {
    return "expected srv+" + entry.transport + ":NAME, without a port: SRV records have theirs";
  }
  if (!is_host_name(host)) return base::quoted(host) + " is no host name to look up";
  entry.host = lower_case(host);
  return {};
}

std::string parse_attribute(std::string_view word, NameEntry& entry) {
  if (word.starts_with("name=")) return "name= is for one backend, and a name to be resolved can have many";
  if (word.starts_with("weight=") && pool::parse_weight(word.substr(7), entry.weight)) return {};
  return "expected weight=N with an N from 1 to " + std::to_string(pool::kMaxWeight) + ", or nothing";
}

}  // namespace

bool is_name_entry(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return !entry_transport(text).empty();
}

base::Expected<NameEntry> parse_name_entry(std::string_view text) {
  NameEntry entry;
  std::string wrong = is_name_entry(text)
                          ? ""
                          : "expected dns+rdma:NAME:PORT or srv+rdma:NAME, or tcp or rdma+tcp in the place of rdma";
  for (const std::string& word : base::split(text, ' ')) {
    if (!wrong.empty() || word.empty()) continue;
    if (entry.text.empty()) {
      entry.text = word;
      entry.kind = word.starts_with(kServicePrefix) ? NameKind::kServices : NameKind::kAddresses;
      entry.transport = entry_transport(word);
      wrong = parse_place(std::string_view(word).substr(word.find(':') + 1), entry);
    } else {
      wrong = parse_attribute(word, entry);
    }
  }
  if (!wrong.empty()) return Status::error(wrong + ", got " + base::quoted(text));
  return entry;
}

bool is_host_name(std::string_view name) {
  constexpr size_t kMaxName = 253;
  constexpr size_t kMaxLabel = 63;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.size() > kMaxName) return false;
  std::string_view label;
  for (size_t at = 0; at <= name.size(); at += label.size() + 1) {
    label = name.substr(at, name.find('.', at) - at);
    if (label.empty() || label.size() > kMaxLabel || !std::all_of(label.begin(), label.end(), is_label_byte))
      return false;
  }
  return !std::all_of(label.begin(), label.end(), is_digit);
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace egret::discovery
