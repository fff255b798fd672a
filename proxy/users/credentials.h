// The users that may speak to this proxy: those of `auth_file`, in memcached's form (USER:PASSWORD a line, every right),
// and those of `users_file` (users_file.h).
//
//   user, password ─▶ judge(): compared with what is known ─┬─▶ right, with the user's rights
//                                                           ├─▶ wrong
//                                                           └─▶ kToBeVerified ─ another thread ─▶ verify(): crypt(3)
//
// The users file holds slow hashes. A password that has been verified once is remembered as a keyed hash, so only the
// first client that gives it waits, and every wrong guess. Nothing here takes longer for a user that exists than for
// one that does not, or for a password that is nearly right; users of one method of hashing are assumed.
//
// Thread: the load functions by one, before others have it; then any.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proxy/users/keyed_hash.h"
#include "proxy/users/rights.h"

namespace egret::proxy {

// What a client says of itself.
struct Login {
  std::string_view user;
  std::string_view password;
};
// SASL PLAIN (RFC 4616): [authorization id] NUL user NUL password. Nothing: it is another message, or the client wants
// to act for another user.
std::optional<Login> parse_plain(std::string_view message);

struct Judgement {
  enum class Verdict : uint8_t { kWrong, kRight, kToBeVerified };
  Verdict verdict = Verdict::kWrong;
  std::shared_ptr<const User> user;  // of kRight; null: a user of auth_file, who may do everything

  bool is_right() const { return verdict == Verdict::kRight; }
};

// A file of users that was read.
struct CredentialsFile {
  std::string path;
  bool is_users_file = false;  // or auth_file
  size_t users = 0;
  bool is_open_to_others = false;  // users who neither own it nor are in its group may read or write it
};

class Credentials {
 public:
  Credentials();

  // Each reads a file; one that is wrong changes nothing. A name stands in one of them only.
  base::Status load_auth_file(const std::string& path);
  base::Status load_users_file(const std::string& path);

  // Quick.
  Judgement judge(const Login& login) const;
  // Slow (password_hash.h): of what was to be verified. Not for a worker's thread.
  Judgement verify(const Login& login) const;
  // As the users file has it now; null: it has no such user.
  std::shared_ptr<const User> find(std::string_view name) const;
  // Who a local user is that comes by slots: the kernel knows him, so he gives no password. Null: nobody.
  std::shared_ptr<const User> find_local(uint32_t uid) const;

  const std::vector<CredentialsFile>& files() const { return files_; }

 private:
  using Key = std::array<std::byte, 32>;
  struct Entry {
    KeyedHash name{};
    std::string hash;                  // of the users file; empty: of auth_file
    std::shared_ptr<const User> user;  // likewise; null
    mutable bool is_verified = false;  // `password` is right
    mutable KeyedHash password{};      // of name and password; passwords are not kept
  };

  KeyedHash hash_of(const Login& login) const;
  const Entry* entry_of(std::string_view name) const;
  void add_file(CredentialsFile file, std::vector<Entry> entries);

  Key key_{};  // random
  std::vector<Entry> entries_;
  bool has_hashes_ = false;
  std::vector<CredentialsFile> files_;
  mutable std::mutex mutex_;  // of the entries' mutable members
};

}  // namespace egret::proxy
