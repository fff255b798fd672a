#include "discovery/members_text.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "pool/ketama.h"

namespace egret::discovery {

using base::Status;

namespace {

// Bytes of a line without its comment: more than an address and a name can have.
constexpr size_t kMaxLine = 1000;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The line without its comment, a carriage return at its end, and blanks around; tabs become spaces.
std::string content_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '#' && (at == 0 || is_blank(line[at - 1]))) line = line.substr(0, at);
  }
  std::string content(line);
  std::ranges::replace(content, '\t', ' ');
  return std::string(base::trimmed(content));
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

}  // namespace

base::Expected<std::vector<pool::Member>> parse_members(std::string_view text, const std::string& file_name) {
  const std::string file = base::quoted_if_odd(file_name) + ":";
  std::vector<pool::Member> members;
  std::unordered_map<std::string, size_t> lines;  // by the name that placement hashes
  for (size_t number = 1; !text.empty(); ++number) {
    const auto at_line = [&](const std::string& what) {
      return Status::error(std::string(file).append(std::to_string(number)).append(": ").append(what));
    };
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string content = content_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    if (content.size() > kMaxLine) return at_line("longer than " + std::to_string(kMaxLine) + " bytes");
    if (has_control(content)) return at_line("control characters in " + base::quoted(content));
    auto member = pool::parse_member(content);
    if (!member) return at_line(member.message());
    const std::string name(pool::ketama_name(member.value().name));
    if (const auto [first, is_new] = lines.emplace(name, number); !is_new) {
      return at_line("the name " + base::quoted(name) + " is that of line " + std::to_string(first->second) +
                     ", too: keys are spread by name, give each its own by name=NAME");
    }
    if (members.size() == pool::kMaxMembers) {
      return at_line("a pool has at most " + std::to_string(pool::kMaxMembers) + " backends");
    }
    members.push_back(std::move(member.value()));
  }
  if (Status good = pool::check_members(members); !good) return Status::error(file + " " + good.message());
  return members;
}

std::string members_text(std::string_view title, std::span<const pool::Member> members) {
  std::string text = "# " + base::one_line(title) + "\n";
  for (const pool::Member& member : members) {
    text += member.address + " weight=" + std::to_string(member.weight) + " name=" + member.name + "\n";
  }
  return text;
}

}  // namespace egret::discovery
