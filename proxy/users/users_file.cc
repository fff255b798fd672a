#include "proxy/users/users_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "proxy/users/password_hash.h"

namespace egret::proxy {

using base::Expected;
using base::Status;

namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxName = 250;

// What ends reading; caught in read_users_file and never leaves this file.
struct Refused {
  int line;
  std::string what;
};

[[noreturn]] void refuse(const YAML::Node& at, const std::string& what) {
  throw Refused{std::max(at.Mark().line, 0) + 1, what};
}

std::string text_of(const YAML::Node& node, const std::string& what) {
  if (!node.IsScalar()) refuse(node, "expected " + what);
  return node.Scalar();
}

// A list, or one text alone.
std::vector<YAML::Node> list_of(const YAML::Node& node, const std::string& what) {
  if (node.IsScalar()) return {node};
  if (!node.IsSequence() || node.size() == 0) refuse(node, "expected " + what);
  return {node.begin(), node.end()};
}

uint8_t read_rights(const YAML::Node& node) {
  constexpr std::string_view kWhat = "a list of read, write and admin";
  uint8_t rights = 0;
  for (const YAML::Node& each : list_of(node, std::string(kWhat))) {
    const std::string word = text_of(each, std::string(kWhat));
    const uint8_t right = word == "read" ? kMayRead : word == "write" ? kMayWrite : word == "admin" ? kMayAdmin : 0;
    if (right == 0) refuse(each, "expected " + std::string(kWhat) + ", got " + base::quoted(word));
    rights |= right;
  }
  return rights;
}

std::vector<std::string> read_prefixes(const YAML::Node& node) {
  const std::string what = "a list of what keys begin with, 1 to 250 bytes each";
  std::vector<std::string> prefixes;
  for (const YAML::Node& each : list_of(node, what)) {
    prefixes.push_back(text_of(each, what));
    if (prefixes.back().empty() || prefixes.back().size() > op::kMaxKeyLength) refuse(each, "expected " + what);
  }
  return prefixes;
}

std::vector<uint32_t> read_uids(const YAML::Node& node) {
  const std::string what = "a list of user ids";
  std::vector<uint32_t> uids;
  for (const YAML::Node& each : list_of(node, what)) {
    const std::string text = text_of(each, what);
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (error != std::errc{} || end != text.data() + text.size()) {
      refuse(each, "expected " + what + ", got " + base::quoted(text));
    }
    uids.push_back(uid);
  }
  return uids;
}

std::string read_name(const YAML::Node& node) {
  std::string name = text_of(node, "the name of a user");
  const bool is_plain = std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c != 0x7F; });
  if (name.empty() || name.size() > kMaxName || !is_plain) {
    refuse(node, "expected a name of 1 to 250 bytes without spaces, got " + base::quoted(name));
  }
  return name;
}

UserEntry read_user(const YAML::Node& name, const YAML::Node& body) {
  UserEntry entry;
  entry.line = name.Mark().line + 1;
  entry.user.name = read_name(name);
  if (!body.IsMap()) refuse(name, entry.user.name + ": expected password, rights and, if wanted, prefixes and uids");
  std::set<std::string> seen;
  for (const auto& row : body) {
    const std::string key = text_of(row.first, "password, rights, prefixes or uids");
    if (!seen.insert(key).second) refuse(row.first, key + ": given twice");
    if (key == "password") {
      entry.hash = text_of(row.second, "a password's hash");
      if (const std::string fault = hash_fault(entry.hash); !fault.empty()) refuse(row.second, "password: " + fault);
    } else if (key == "rights") {
      entry.user.rights = read_rights(row.second);
    } else if (key == "prefixes") {
      entry.user.prefixes = read_prefixes(row.second);
    } else if (key == "uids") {
      entry.user.uids = read_uids(row.second);
    } else {
      refuse(row.first, "expected password, rights, prefixes or uids, got " + base::quoted(key));
    }
  }
  for (const char* needed : {"password", "rights"}) {
    if (!seen.contains(needed)) refuse(name, entry.user.name + ": " + needed + " is missing");
  }
  return entry;
}

std::vector<UserEntry> read_users(const std::string& text) {
  const YAML::Node root = YAML::Load(text);
  if (!root.IsMap() || root.size() == 0) refuse(root, "expected users, each a name with password and rights");
  std::vector<UserEntry> users;
  for (const auto& each : root) {
    users.push_back(read_user(each.first, each.second));
    const auto twin = std::ranges::find(users, users.back().user.name, [](const UserEntry& u) { return u.user.name; });
    if (&*twin != &users.back())
      refuse(each.first, users.back().user.name + ": a user of this name is in line " + std::to_string(twin->line));
  }
  for (const UserEntry& entry : users) {
    for (const uint32_t uid : entry.user.uids) {
      const auto first = std::ranges::find_if(
          users, [&](const UserEntry& other) { return std::ranges::count(other.user.uids, uid) > 0; });
      if (first->user.name == entry.user.name) continue;
      throw Refused{entry.line, entry.user.name + ": uid " + std::to_string(uid) + " is " + first->user.name + "'s"};
    }
  }
  return users;
}

}  // namespace

Expected<std::vector<UserEntry>> read_users_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::system_error("cannot read " + path, errno);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || (text.empty() && !file.eof())) return Status::error("cannot read " + path);
  if (text.size() > kMaxFileBytes)
    return Status::error(path + ": more than " + std::to_string(kMaxFileBytes) + " bytes");
  const auto at_line = [&](int line, const std::string& what) {
    return Status::error(path + ", line " + std::to_string(line) + ": " + base::one_line(what));
  };
  try {
    return read_users(text);
  } catch (const Refused& refused) {
    return at_line(refused.line, refused.what);
  } catch (const YAML::Exception& problem) {
    return at_line(std::max(problem.mark.line, 0) + 1, "not YAML: " + problem.msg);
  }
}

}  // namespace egret::proxy
