#include "admin/host_check.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <arpa/inet.h>

#include "base/text.h"

namespace egret::admin {

namespace {

constexpr size_t kMaxHostName = 253;  // RFC 1035

std::string lower(std::string_view text) {
  std::string folded(text);
  std::ranges::transform(folded, folded.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return folded;
}

bool is_address(const std::string& text) {
  in6_addr ignored;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    return ::inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), &ignored) == 1;
  }
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1;
}

// Without the port. The colons of an IPv6 address stand within brackets.
std::string_view host_of(std::string_view header) {
  const size_t colon = header.rfind(':');
  const bool has_port = colon != header.npos && header.find(']', colon) == header.npos;
  return has_port ? header.substr(0, colon) : header;
}

}  // namespace

void HostCheck::allow(std::vector<std::string> names) {
  names_ = std::move(names);
  for (std::string& name : names_) name = lower(name);
}

bool HostCheck::passes(std::string_view header) const {
  const std::string host = lower(host_of(header));
  return host == "localhost" || is_address(host) || std::ranges::find(names_, host) != names_.end();
}

base::Status check_host_name(std::string_view name) {
  const bool is_name = !name.empty() && name.size() <= kMaxHostName && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (is_name) return base::Status::ok();
  return base::Status::error("expected names of hosts without ports, got " + base::quoted(name));
}

}  // namespace egret::admin
