// What a user may do, and what each command needs.
//
//   Command ─▶ rights_needed(): read, write, admin or none ─┐
//           └▶ its key ─ begins with one of the prefixes ────┴▶ permits()
//
// A user of the file in memcached's form (auth_file) has no User: it may do everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memcache/command.h"

namespace egret::proxy {

enum Right : uint8_t {
  kMayRead = 1 << 0,   // values, and what is known of an item
  kMayWrite = 1 << 1,  // store, delete, touch
  kMayAdmin = 1 << 2,  // what concerns the whole server, or lists what others have stored
};
inline constexpr uint8_t kEveryRight = kMayRead | kMayWrite | kMayAdmin;

// One of the users file. Immutable.
struct User {
  std::string name;
  uint8_t rights = 0;                 // of Right
  std::vector<std::string> prefixes;  // of keys; none: every key
  std::vector<uint32_t> uids{};       // local users who are this one when they come by slots, without a password

  // Whether the key begins with one of the prefixes. It need not exist.
  bool may_use_key(std::string_view key) const;
  bool is_unrestricted() const { return rights == kEveryRight && prefixes.empty(); }
};

// The user needs all of the rights that are returned.
uint8_t rights_needed(const memcache::Command& command);
bool permits(const User& user, const memcache::Command& command);

}  // namespace egret::proxy
