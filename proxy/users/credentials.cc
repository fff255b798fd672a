#include "proxy/users/credentials.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include <openssl/crypto.h>
#include <sys/stat.h>

#include "base/random.h"
#include "proxy/users/password_hash.h"
#include "proxy/users/users_file.h"

namespace egret::proxy {

using base::Status;
using Verdict = Judgement::Verdict;

namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;  // of auth_file

bool is_open_to_others(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0;
}

}  // namespace

Credentials::Credentials() {
  base::fill_random(key_);
}

// --- the files

Status Credentials::load_auth_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::system_error("cannot read " + path, errno);
  std::vector<Entry> entries;
  size_t bytes = 0;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    bytes += line.size() + 1;
    if (bytes > kMaxFileBytes) return Status::error(path + ": more than " + std::to_string(kMaxFileBytes) + " bytes");
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0 || colon + 1 == line.size()) {
      return Status::error(path + ", line " + std::to_string(number) + ": expected USER:PASSWORD");
    }
    const std::string_view whole(line);
    const Login login{whole.substr(0, colon), whole.substr(colon + 1)};
    Entry& entry = entries.emplace_back();
    entry.name = keyed_hash(key_, {login.user});
    entry.password = hash_of(login);
    entry.is_verified = true;
    OPENSSL_cleanse(line.data(), line.size());
  }
  if (file.bad()) return Status::system_error("cannot read " + path, errno);
  if (entries.empty()) return Status::error(path + ": no users");
  add_file({.path = path, .is_users_file = false}, std::move(entries));
  return Status::ok();
}

Status Credentials::load_users_file(const std::string& path) {
  auto read = read_users_file(path);
  if (!read) return read.status();
  std::vector<Entry> entries;
  for (UserEntry& each : read.value()) {
    if (entry_of(each.user.name) != nullptr) {
      return Status::error(path + ", line " + std::to_string(each.line) + ": " + each.user.name +
                           " is in auth_file, too");
    }
    Entry& entry = entries.emplace_back();
    entry.name = keyed_hash(key_, {each.user.name});
    entry.hash = std::move(each.hash);
    entry.user = std::make_shared<const User>(std::move(each.user));
  }
  has_hashes_ = true;
  add_file({.path = path, .is_users_file = true}, std::move(entries));
  return Status::ok();
}

void Credentials::add_file(CredentialsFile file, std::vector<Entry> entries) {
  file.users = entries.size();
  file.is_open_to_others = is_open_to_others(file.path);
  files_.push_back(std::move(file));
  std::ranges::move(entries, std::back_inserter(entries_));
}

// --- who is right

KeyedHash Credentials::hash_of(const Login& login) const {
  return keyed_hash(key_, {login.user, login.password});
}

// All are compared, whatever is found.
const Credentials::Entry* Credentials::entry_of(std::string_view name) const {
  const KeyedHash wanted = keyed_hash(key_, {name});
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (is_same(entry.name, wanted)) found = &entry;
  }
  return found;
}

Judgement Credentials::judge(const Login& login) const {
  const KeyedHash given = hash_of(login);
  const Entry* found = nullptr;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (is_same(entry.password, given) && entry.is_verified) found = &entry;
  }
  if (found != nullptr) return {Verdict::kRight, found->user};
  return {has_hashes_ ? Verdict::kToBeVerified : Verdict::kWrong, nullptr};
}

// For an unknown user another user's hash is computed, so that it takes as long.
Judgement Credentials::verify(const Login& login) const {
  const Entry* const known = entry_of(login.user);
  const auto with_hash = std::ranges::find_if(entries_, [](const Entry& entry) { return !entry.hash.empty(); });
  if (with_hash == entries_.end()) return {};
  const bool is_real = known != nullptr && !known->hash.empty();
  const Entry& entry = is_real ? *known : *with_hash;
  if (!is_password_of(login.password, entry.hash) || !is_real) return {};
  const KeyedHash password = hash_of(login);
  const std::lock_guard lock(mutex_);
  entry.password = password;
  entry.is_verified = true;
  return {Verdict::kRight, entry.user};
}

std::shared_ptr<const User> Credentials::find(std::string_view name) const {
  const Entry* const entry = entry_of(name);
  return entry == nullptr ? nullptr : entry->user;
}

std::shared_ptr<const User> Credentials::find_local(uint32_t uid) const {
  for (const Entry& entry : entries_) {
    if (entry.user != nullptr && std::ranges::count(entry.user->uids, uid) > 0) return entry.user;
  }
  return nullptr;
}

std::optional<Login> parse_plain(std::string_view message) {
  const size_t user = message.find('\0');
  if (user == message.npos) return std::nullopt;
  const size_t password = message.find('\0', user + 1);
  if (password == message.npos) return std::nullopt;
  const Login login{message.substr(user + 1, password - user - 1), message.substr(password + 1)};
  const std::string_view acts_for = message.substr(0, user);
  return acts_for.empty() || acts_for == login.user ? std::optional(login) : std::nullopt;
}

}  // namespace egret::proxy
