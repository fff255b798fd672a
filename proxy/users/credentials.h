// The users that may speak to this proxy, read from a file in memcached's form: USER:PASSWORD a line.
//
// Thread: load() by one, before others have it; then any.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proxy/users/keyed_hash.h"

namespace egret::proxy {

// What a client says of itself.
struct Login {
  std::string_view user;
  std::string_view password;
};
// SASL PLAIN (RFC 4616): [authorization id] NUL user NUL password. Nothing: it is another message, or the client wants
// to act for another user.
std::optional<Login> parse_plain(std::string_view message);

class Credentials {
 public:
  explicit Credentials(std::string path);

  // Reads the file; a file that is wrong changes nothing.
  base::Status load();

  // Takes as long for a user that does not exist, and however much of the password is right.
  bool know(std::string_view user, std::string_view password) const;

  const std::string& path() const { return path_; }
  size_t user_count() const { return users_.size(); }
  // Whether users who neither own the file nor are in its group may read or write it, as of the last load().
  bool is_open_to_others() const { return is_open_to_others_; }

 private:
  using Key = std::array<std::byte, 32>;

  KeyedHash hash_of(std::string_view user, std::string_view password) const;

  const std::string path_;
  Key key_{};                     // random
  std::vector<KeyedHash> users_;  // of the name and the password of each: passwords are not kept
  bool is_open_to_others_ = false;
};

}  // namespace egret::proxy
