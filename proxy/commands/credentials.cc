#include "proxy/commands/credentials.h"

#include <cerrno>
#include <fstream>

#include <openssl/crypto.h>
#include <sys/stat.h>

namespace egret::proxy {

using base::Status;

namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;

// Takes as long for a wrong password as for the right one.
bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Status Credentials::load() {
  std::ifstream file(path_);
  if (!file) return Status::system_error("cannot read " + path_, errno);
  Users users;
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
    users.push_back({line.substr(0, colon), line.substr(colon + 1)});
  }
  if (file.bad()) return Status::system_error("cannot read " + path_, errno);
  if (users.empty()) return Status::error(path_ + ": no users");
  users_ = std::move(users);
  struct stat status {};
  is_open_to_others_ = ::stat(path_.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0;
  return Status::ok();
}

bool Credentials::know(std::string_view user, std::string_view password) const {
  bool known = false;
  for (const User& each : users_) known |= same(each.name, user) && same(each.password, password);
  return known;
}

bool Credentials::know_plain(std::string_view message) const {
  const size_t user = message.find('\0');
  if (user == message.npos) return false;
  const size_t password = message.find('\0', user + 1);
  if (password == message.npos) return false;
  const std::string_view name = message.substr(user + 1, password - user - 1);
  const std::string_view acts_for = message.substr(0, user);
  return know(name, message.substr(password + 1)) && (acts_for.empty() || acts_for == name);
}

}  // namespace egret::proxy
