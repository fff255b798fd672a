// The users that may speak to this proxy, read from a file in memcached's form: USER:PASSWORD a line.
//
// Thread: load() by one, before others have it; then any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::proxy {

class Credentials {
 public:
  explicit Credentials(std::string path) : path_(std::move(path)) {}

  // Reads the file; a file that is wrong changes nothing.
  base::Status load();

  bool know(std::string_view user, std::string_view password) const;
  // What a client says in SASL PLAIN (RFC 4616): [authorization id] NUL user NUL password.
  bool know_plain(std::string_view message) const;

  const std::string& path() const { return path_; }
  size_t user_count() const { return users_.size(); }
  // Whether users who neither own the file nor are in its group may read or write it, as of the last load().
  bool is_open_to_others() const { return is_open_to_others_; }

 private:
  struct User {
    std::string name;
    std::string password;
  };
  using Users = std::vector<User>;

  const std::string path_;
  Users users_;
  bool is_open_to_others_ = false;
};

}  // namespace egret::proxy
