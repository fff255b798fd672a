#include "proxy/users/credentials.h"

#include <cerrno>
#include <fstream>
#include <utility>

#include <openssl/crypto.h>
#include <sys/stat.h>

#include "base/random.h"

namespace egret::proxy {

using base::Status;

namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;

}  // namespace

Credentials::Credentials(std::string path) : path_(std::move(path)) {
  base::fill_random(key_);
}

Status Credentials::load() {
  std::ifstream file(path_);
  if (!file) return Status::system_error("cannot read " + path_, errno);
  std::vector<KeyedHash> users;
  size_t bytes = 0;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    bytes += line.size() + 1;
    if (bytes > kMaxFileBytes) return Status::error(path_ + ": more than " + std::to_string(kMaxFileBytes) + " bytes");
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0 || colon + 1 == line.size()) {
      return Status::error(path_ + ", line " + std::to_string(number) + ": expected USER:PASSWORD");
    }
    users.push_back(hash_of(std::string_view(line).substr(0, colon), std::string_view(line).substr(colon + 1)));
    OPENSSL_cleanse(line.data(), line.size());
  }
  if (file.bad()) return Status::system_error("cannot read " + path_, errno);
  if (users.empty()) return Status::error(path_ + ": no users");
  users_ = std::move(users);
  struct stat status {};
  is_open_to_others_ = ::stat(path_.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0;
  return Status::ok();
}

KeyedHash Credentials::hash_of(std::string_view user, std::string_view password) const {
  return keyed_hash(key_, {user, password});
}

bool Credentials::know(std::string_view user, std::string_view password) const {
  const KeyedHash given = hash_of(user, password);
  bool known = false;
  for (const KeyedHash& each : users_) known |= is_same(each, given);
  return known;
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
